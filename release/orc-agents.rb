# A formula for a tap of your own: `make formula URL=…` fills in what is between the at signs.
class OrcAgents < Formula
  desc "@DESC@"
  homepage "@HOMEPAGE@"
  url "@URL@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license "@LICENSE@"

  depends_on "git"
  depends_on "python@3.13"

  def install
    system Formula["python@3.13"].opt_bin/"python3.13", "-m", "venv", libexec
    system libexec/"bin/python", "-m", "pip", "install", "--no-cache-dir", "#{buildpath}[web,mcp,otel,postgres]"
    bin.install_symlink libexec/"bin/orc"
    generate_completions_from_executable(bin/"orc", "completion")
  end

  test do
    assert_equal "orc #{version}", shell_output("#{bin}/orc --version").strip
    system "git", "init", "--quiet", testpath
    assert_match "no runs", shell_output("#{bin}/orc status --repo #{testpath}").downcase
  end
end
