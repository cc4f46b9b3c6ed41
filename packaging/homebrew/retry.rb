# The Homebrew formula: a release's binary with its man pages and completions, for a tap. The release job puts in the version and the sums,
# by packaging/homebrew/fill; as it stands here it names no release.
class Retry < Formula
  desc "Retry commands and HTTP requests, with a journal of every attempt"
  homepage "https://github.com/10f93571/retry"
  version "0.0.0"
  license "MIT"

  on_macos do
    on_arm do
      url "https://github.com/10f93571/retry/releases/download/v#{version}/retry_#{version}_darwin_arm64.tar.gz"
      sha256 "sum of darwin_arm64"
    end
    on_intel do
      url "https://github.com/10f93571/retry/releases/download/v#{version}/retry_#{version}_darwin_amd64.tar.gz"
      sha256 "sum of darwin_amd64"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/10f93571/retry/releases/download/v#{version}/retry_#{version}_linux_arm64.tar.gz"
      sha256 "sum of linux_arm64"
    end
    on_intel do
      url "https://github.com/10f93571/retry/releases/download/v#{version}/retry_#{version}_linux_amd64.tar.gz"
      sha256 "sum of linux_amd64"
    end
  end

  def install
    bin.install "retry"
    man1.install Dir["man/*.1"]
    man5.install Dir["man/*.5"]
    bash_completion.install "completions/retry.bash" => "retry"
    zsh_completion.install "completions/_retry"
    fish_completion.install "completions/retry.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/retry --version")
    output = shell_output("#{bin}/retry -n 2 -b 1ms --no-state -- sh -c 'echo attempt $RETRY_ATTEMPT; exit 3'", 3)
    assert_equal "attempt 1\nattempt 2\n", output
  end
end
