// Package version says which build of retry this is.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// What .ci/release and goreleaser say of a build. The linker sets it, as in
//
//	go build -ldflags "-X github.com/10f93571/retry/internal/version.number=1.2.3 -X …/version.commit=… -X …/version.date=…"
//
// with the date of the commit, so that two builds of a commit are equal. Without a number it is no release. A plain
// go build leaves all of them empty.
var number, commit, date, modified string

// Build is what is known of a build. What is not known is empty.
type Build struct {
	Version      string // of a release, without a v; devel for a build from a clone
	Commit       string // of the sources, in full
	Modified     bool   // the sources differ from the commit
	Date         string // of the commit, RFC 3339
	Go, OS, Arch string
}

// Devel is the version of a build that is no release.
const Devel = "devel"

// Get returns what this build says of itself.
func Get() Build {
	b := Build{Version: number, Commit: commit, Date: date, Modified: modified == "true"}
	if info, ok := debug.ReadBuildInfo(); ok && number == "" && commit == "" {
		b = of(info)
	}
	if b.Version == "" {
		b.Version = Devel
	}
	b.Version = strings.TrimPrefix(b.Version, "v")
	b.Go, b.OS, b.Arch = runtime.Version(), runtime.GOOS, runtime.GOARCH
	return b
}

// of reads what the Go toolchain wrote into the binary: the version for go install MODULE@VERSION, the commit for a
// build from a clone. Such a build gets a version made from the commit and the last tag, too, which is that of no release.
func of(info *debug.BuildInfo) Build {
	b := Build{Version: info.Main.Version}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit, b.Version = s.Value, Devel
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if b.Version == "(devel)" {
		b.Version = Devel
	}
	return b
}
