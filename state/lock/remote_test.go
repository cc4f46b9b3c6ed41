package lock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/10f93571/retry/state"
)

func TestIsRemote(t *testing.T) {
	tests := []struct {
		magic      uint32
		fuse, name string
		want       bool
	}{
		{0x6969, "", "nfs", true},
		{0xff534d42, "", "cifs", true},
		{0xfe534d42, "", "smb2", true},
		{0x517b, "", "smb", true},
		{0x01021997, "", "9p", true},
		{0x00c36400, "", "ceph", true},
		{0x0bd00bd0, "", "lustre", true},
		{0x47504653, "", "gpfs", true},
		{0x5346414f, "", "afs", true},
		{0x73757245, "", "coda", true},
		{0x7461636f, "", "ocfs2", true},
		{0xef53, "", "", false},     // ext4
		{0x58465342, "", "", false}, // xfs
		{0x9123683e, "", "", false}, // btrfs
		{0x794c7630, "", "", false}, // overlayfs
		{tmpfsMagic, "", "", false},
		{fuseMagic, "fuse.sshfs", "fuse.sshfs", true},
		{fuseMagic, "fuse.s3fs", "fuse.s3fs", true},
		{fuseMagic, "fuse.glusterfs", "fuse.glusterfs", true},
		{fuseMagic, "fuse.rclone", "fuse.rclone", true},
		{fuseMagic, "fuseblk", "fuseblk", false},
		{fuseMagic, "fuse.gocryptfs", "fuse.gocryptfs", false},
		{fuseMagic, "", "", false},
	}
	for _, test := range tests {
		if name, got := isRemote(test.magic, test.fuse); got != test.want || name != test.name {
			t.Errorf("%#x %s: got %q, %v", test.magic, test.fuse, name, got)
		}
	}
}

// Nothing is made there, and nothing is written to what is there.
func TestANetworkFileSystemIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	replaceStatfs(t, FileSystem{Name: "nfs", Remote: true})
	err := CreateDir(dir)
	if !errors.Is(err, state.ErrNetwork) || !strings.Contains(err.Error(), "network file system (nfs)") || !strings.Contains(err.Error(), "\nhint: use a directory on a local disk") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
}

func TestAnUnknownFileSystemIsUsed(t *testing.T) {
	before := statfs
	t.Cleanup(func() { statfs = before })
	statfs = func(string) (FileSystem, error) { return FileSystem{}, errors.ErrUnsupported }
	if err := CreateDir(t.TempDir()); err != nil {
		t.Errorf("got %v, want it used", err)
	}
}

// Files that cannot be written are another thing to mend than a file system.
func TestReadOnlyFilesHaveTheirOwnHint(t *testing.T) {
	replaceStatfs(t, FileSystem{})
	if got := ReadOnlyHint("/j"); !strings.HasPrefix(got, "chmod u+w /j") {
		t.Errorf("got %q", got)
	}
}

// replaceStatfs has every path lie on one file system until the test ends.
func replaceStatfs(t *testing.T, system FileSystem) {
	t.Helper()
	before := statfs
	t.Cleanup(func() { statfs = before })
	statfs = func(string) (FileSystem, error) { return system, nil }
}
