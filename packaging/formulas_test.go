package packaging_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/internal/testkit"
)

// homebrew is what a formula needs to be read: on a system and a processor it keeps what holds there, and it lists what
// would be installed, in a directory that is an archive.
const homebrew = `
class Formula
  SYSTEM, PROCESSOR = ARGV
  def self.said = (@said ||= {})
  %w[desc homepage license url sha256].each { |name| define_singleton_method(name) { |text| said[name] = text } }
  def self.version(text = nil) = text ? said["version"] = text : said["version"]
  def self.on_macos = SYSTEM == "darwin" && yield
  def self.on_linux = SYSTEM == "linux" && yield
  def self.on_arm = PROCESSOR == "arm64" && yield
  def self.on_intel = PROCESSOR == "amd64" && yield
  def self.test = nil
  %w[bin man1 man5 bash_completion zsh_completion fish_completion].each do |name|
    define_method(name) { Folder.new(name) }
  end
end
class Folder
  def initialize(name) = @name = name
  def install(files)
    list = files.is_a?(Hash) ? files.keys : Array(files)
    list.each { |file| raise "#{file} is missing" unless File.exist?(file) }
    puts("#{@name}: #{list.sort.join(" ")}")
  end
end
load ARGV.fetch(2)
puts Retry.said.values_at("url", "sha256")
Retry.new.install
`

// sums writes the file of sums of a release.
func sums(t *testing.T, systems ...string) (file string) {
	t.Helper()
	text := ""
	for _, system := range systems {
		text += sumOf(system) + "  retry_1.2.3_" + system + ".tar.gz\n"
	}
	file = filepath.Join(t.TempDir(), "SHA256SUMS")
	testkit.Write(t, file, text)
	return file
}

// sumOf is the sum that an archive of the system has in these tests.
func sumOf(system string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(system))) }

func TestHomebrewFormula(t *testing.T) {
	need(t, "bash")
	linux, darwin := sums(t, "linux_amd64", "linux_arm64", "linux_riscv64"), sums(t, "darwin_arm64", "darwin_amd64")
	got := execute(t, ".", os.Environ(), "homebrew/fill", "v1.2.3", linux)
	if got.status == 0 || !strings.Contains(got.stderr, "darwin_arm64") {
		t.Errorf("without the sums of darwin: got status %d and %q, want a failure", got.status, got.stderr)
	}
	filled := execute(t, ".", os.Environ(), "homebrew/fill", "v1.2.3", linux, darwin)
	if filled.status != 0 || strings.Contains(filled.stdout, "sum of") ||
		!strings.Contains(filled.stdout, `version "1.2.3"`) {
		t.Fatalf("got status %d, %s and %s", filled.status, filled.stderr, filled.stdout)
	}
	ruby := need(t, "ruby")
	archive := t.TempDir()
	for _, file := range []string{"retry", "man/retry.1", "man/retry-http.1", "man/retry-config.5",
		"completions/retry.bash", "completions/_retry", "completions/retry.fish"} {
		testkit.Must(t, os.MkdirAll(filepath.Join(archive, filepath.Dir(file)), 0o700))
		testkit.Write(t, filepath.Join(archive, file), "")
	}
	formula, stub := filepath.Join(archive, "retry.rb"), filepath.Join(archive, "homebrew.rb")
	testkit.Write(t, formula, filled.stdout)
	testkit.Write(t, stub, homebrew)
	for _, system := range []string{"darwin_arm64", "darwin_amd64", "linux_arm64", "linux_amd64"} {
		name, processor, _ := strings.Cut(system, "_")
		got := execute(t, archive, os.Environ(), ruby, "-w", stub, name, processor, formula)
		url := "https://github.com/10f93571/retry/releases/download/v1.2.3/retry_1.2.3_" + system + ".tar.gz"
		want := url + "\n" + sumOf(system) + `
bin: retry
man1: man/retry-http.1 man/retry.1
man5: man/retry-config.5
bash_completion: completions/retry.bash
zsh_completion: completions/_retry
fish_completion: completions/retry.fish
`
		if got.stdout != want || got.status != 0 {
			t.Errorf("%s: got status %d, %s and %s, want %s", system, got.status, got.stdout, got.stderr, want)
		}
	}
}

// nixpkgs is what the flake asks of nixpkgs, and returns what it would build.
const nixpkgs = `
let
  flake = import FLAKE;
  pkgs = { buildGoModule = arguments: arguments; installShellFiles = "installShellFiles"; inherit lib; };
  lib = {
    genAttrs = names: make: builtins.listToAttrs (map (name: { inherit name; value = make name; }) names);
    licenses.mit = "MIT";
  };
  systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
  nixpkgs = { inherit lib; legacyPackages = lib.genAttrs systems (_: pkgs); };
  self = { rev = "c0ffee"; shortRev = "c0ff"; lastModifiedDate = "20261123014501"; };
  package = (flake.outputs { inherit self nixpkgs; }).packages.aarch64-darwin.default;
in
  builtins.toJSON (builtins.removeAttrs package [ "src" ])
`

func TestNixFlake(t *testing.T) {
	nix := need(t, "nix-instantiate")
	flake, err := filepath.Abs("nix/flake.nix")
	testkit.Must(t, err)
	stub := filepath.Join(t.TempDir(), "nixpkgs.nix")
	testkit.Write(t, stub, strings.ReplaceAll(nixpkgs, "FLAKE", flake))
	got := execute(t, ".", os.Environ(), nix, "--eval", "--strict", stub)
	for _, want := range []string{`version.commit=c0ffee`, `version.date=2026-11-23T01:45:01Z`, `sha256-`,
		`\"version\":\"c0ff\"`} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("got status %d, %s and %s, want %s", got.status, got.stdout, got.stderr, want)
		}
	}
}
