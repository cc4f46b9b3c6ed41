package lock

import (
	"strings"

	"github.com/10f93571/retry/state"
)

// remote names the network file systems, by the number that Linux gives a type in statfs. WAL keeps its index in memory that
// processes share, which two machines do not; and their locks may be none. The cluster file systems are here for the same reason.
var remote = []struct {
	magic uint32
	name  string
}{
	{0x00006969, "nfs"},
	{0x0000517b, "smb"},
	{0xff534d42, "cifs"},
	{0xfe534d42, "smb2"},
	{0x5346414f, "afs"},
	{0x6b414653, "kafs"},
	{0x00c36400, "ceph"},
	{0x0bd00bd0, "lustre"},
	{0x47504653, "gpfs"},
	{0x01021997, "9p"},
	{0x73757245, "coda"},
	{0x7461636f, "ocfs2"},
	{0x01161970, "gfs2"},
	{0x0000564c, "ncp"},
	{0x20030528, "orangefs"},
	{0x19830326, "beegfs"},
	{0xaad7aaea, "panfs"},
	{0x61636673, "acfs"},
	{0xbacbacbc, "vmhgfs"},
	{0x786f4256, "vboxsf"},
	{0xbeefdead, "snfs"},
	{0x013111a8, "ibrix"},
}

// fuseMagic stands for every file system in user space, local ones and others.
const fuseMagic = 0x65735546

// The file systems that are memory.
const (
	tmpfsMagic = 0x01021994
	ramfsMagic = 0x858458f6
)

// remoteFUSE are the programs behind FUSE that are known to reach over a network. What is not known may be local, and is used:
// the doctor says so.
var remoteFUSE = []string{
	"sshfs", "s3fs", "goofys", "mountpoint-s3", "gcsfuse", "blobfuse", "blobfuse2", "rclone", "davfs", "davfs2", "curlftpfs", "smbnetfs",
	"glusterfs", "ceph", "ceph-fuse", "juicefs", "seaweedfs", "moosefs", "mfs", "lizardfs", "hdfs", "fuse_dfs", "cvmfs", "google-drive-ocamlfuse",
}

// isRemote reports whether a file system is another machine's; name is what to call it. fuse is the type that the list of mounts
// has for it, such as fuse.sshfs.
func isRemote(magic uint32, fuse string) (name string, yes bool) {
	if magic == fuseMagic {
		program := strings.ToLower(strings.TrimPrefix(fuse, "fuse."))
		for _, known := range remoteFUSE {
			if program == known {
				return fuse, true
			}
		}
		return fuse, false
	}
	for _, system := range remote {
		if system.magic == magic {
			return system.name, true
		}
	}
	return "", false
}

// FileSystem is what the system tells of the one that a path is on.
type FileSystem struct {
	Name     string // of its type, where that is known
	Remote   bool
	Unsure   bool // it may be either
	Memory   bool // a reboot loses what is there
	ReadOnly bool
	Free     uint64 // bytes
	Inodes   uint64 // free ones
	Counted  bool   // it has a limit of inodes
}

// Statfs returns what the system tells of the file system that the path is on.
func Statfs(path string) (FileSystem, error) { return statfs(path) }

// statfs asks the system; tests put another in its place, since no test can mount a network file system.
var statfs = systemStatfs

// CheckLocal refuses a directory on a network file system, before anything is made there.
func CheckLocal(dir string) error {
	path, _, err := Nearest(dir)
	if err != nil {
		return err
	}
	system, err := statfs(path)
	if err != nil || !system.Remote {
		return nil // where the system does not tell, it is no worse than without asking
	}
	return state.NewFault(state.ErrNetwork, "use a directory on a local disk, with --state or RETRY_STATE_DIR",
		"%s is on a network file system (%s), where SQLite cannot share a journal", path, system.Name)
}

// ReadOnlyHint says what to do about a directory that cannot be written: SQLite does not tell a read-only file system from read-only files.
func ReadOnlyHint(dir string) string {
	if system, err := statfs(dir); err == nil && !system.ReadOnly {
		return "chmod u+w " + dir + " and what is in it, or use another directory with --state"
	}
	return "mount the file system of " + dir + " writable, or use another directory with --state"
}
