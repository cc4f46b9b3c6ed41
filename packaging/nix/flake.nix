# The nix flake: nix run 'github:10f93571/retry?dir=packaging/nix' -- --version
#
# vendorHash is the hash of the modules. packaging/nix/vendor-hash computes it, and the release job refuses a stale one. The hash was computed
# by that script alone: this flake has never been built by nix, since the machines that made it do not reach nixpkgs;
# and so there is no flake.lock. `nix flake lock` makes one, which pins nixpkgs.
{
  description = "Retry commands and HTTP requests, with a journal of every attempt";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable"; # it needs the Go that go.mod names

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      seconds = self.lastModifiedDate or "19700101000000";
      part = from: count: builtins.substring from count seconds;
      date = "${part 0 4}-${part 4 2}-${part 6 2}T${part 8 2}:${part 10 2}:${part 12 2}Z";
      settings = "github.com/10f93571/retry/internal/version";
    in
    {
      packages = forEach (pkgs: {
        default = pkgs.buildGoModule {
          pname = "retry";
          version = self.shortRev or "devel";
          src = ../..;
          vendorHash = "sha256-Y27AxtrCXfvm47t/uO+Pa4/P/QEUUsqLEvbOw5rUkwo=";
          subPackages = [ "." ];
          env.CGO_ENABLED = 1; # the journal is SQLite
          env.CGO_CFLAGS = "-O2 -g -DSQLITE_DEFAULT_PCACHE_INITSZ=0 -DSQLITE_DEFAULT_MEMSTATUS=0";
          ldflags = [ "-s" "-w" "-X ${settings}.commit=${self.rev or ""}" "-X ${settings}.date=${date}" ];
          doCheck = false; # the tests want terminals, a network of their own and the clone
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            installManPage packaging/man/*.[15]
            for shell in bash zsh fish; do
              $out/bin/retry completion $shell >completion.$shell
            done
            installShellCompletion --cmd retry --bash completion.bash --zsh completion.zsh --fish completion.fish
          '';
          meta = {
            description = "Retry commands and HTTP requests, with a journal of every attempt";
            homepage = "https://github.com/10f93571/retry";
            license = pkgs.lib.licenses.mit;
            mainProgram = "retry";
          };
        };
      });
    };
}
