package lock

import (
	"testing"
)

func TestTypeOfDevice(t *testing.T) {
	const mounts = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
36 22 0:31 / /mnt/files rw,nosuid - fuse.sshfs me@host:/ rw,user_id=1000
37 22 0:32 / /mnt/a\040b rw,nosuid shared:9 master:3 - fuseblk /dev/sdb1 rw
38 22
`
	tests := []struct {
		major, minor uint32
		want         string
	}{
		{254, 0, "ext4"},
		{0, 31, "fuse.sshfs"},
		{0, 32, "fuseblk"},
		{0, 3, ""},
	}
	for _, test := range tests {
		if got := typeOfDevice(mounts, test.major, test.minor); got != test.want {
			t.Errorf("%d:%d: got %q, want %q", test.major, test.minor, got, test.want)
		}
	}
}

func TestTheRootIsMounted(t *testing.T) {
	system, err := systemStatfs("/proc")
	if err != nil || system.Remote || system.Unsure {
		t.Errorf("%+v, %v", system, err)
	}
	if mountType("/proc") != "proc" {
		t.Errorf("/proc is a %q", mountType("/proc"))
	}
}
