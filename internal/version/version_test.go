package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "CGO_ENABLED", Value: "1"}, {Key: "vcs", Value: "git"},
		{Key: "vcs.revision", Value: "0a1b2c"}, {Key: "vcs.time", Value: "2026-11-23T00:05:12Z"}, {Key: "vcs.modified", Value: "true"}}
	for _, row := range []struct {
		name string
		info debug.BuildInfo
		want Build
	}{
		{name: "go install", info: debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, want: Build{Version: "v1.2.3"}},
		{name: "no clone", info: debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, want: Build{Version: Devel}},
		{name: "a clone", info: debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.2026+dirty"}, Settings: vcs},
			want: Build{Version: Devel, Commit: "0a1b2c", Date: "2026-11-23T00:05:12Z", Modified: true}},
	} {
		if got := of(&row.info); got != row.want {
			t.Errorf("%s: got %+v, want %+v", row.name, got, row.want)
		}
	}
}

func TestGet(t *testing.T) {
	t.Cleanup(func() { number, commit, date, modified = "", "", "", "" })
	if got := Get(); got.Version == "" || got.Go == "" || got.OS == "" || got.Arch == "" {
		t.Errorf("without flags of the linker: got %+v, want a version, Go and the system", got)
	}
	number, commit, date = "v1.2.3", "0a1b2c", "2026-11-23T00:05:12Z"
	got := Get()
	if got.Version != "1.2.3" || got.Commit != commit || got.Date != date || got.Modified {
		t.Errorf("a release: got %+v", got)
	}
	number, modified = "", "true"
	if got := Get(); got.Version != Devel || got.Commit != commit || !got.Modified {
		t.Errorf("from a clone: got %+v, want devel with its commit", got)
	}
}
