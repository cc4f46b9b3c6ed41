package httpexec

import (
	"os"
	"path/filepath"

	"github.com/10f93571/retry/internal/spool"
)

// part is the file beside a destination that takes its place once it is whole.
type part struct {
	destination
	name string
	body *spool.Spool
}

// newPart makes the file. What an earlier run of the task left under its name is of no use: nobody knows whether it is all there.
func newPart(d destination, id string) (*part, error) {
	name := partName(d.path, id)
	_ = os.Remove(name)
	mode := os.FileMode(0o666)
	if d.mode != 0 {
		mode = d.mode.Perm()
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode) // exclusively: nobody's link is followed
	if err != nil {
		return nil, err
	}
	p := &part{destination: d, name: name}
	if d.mode != 0 {
		err = file.Chmod(mode) // whatever the umask says
	}
	if err == nil {
		p.body, err = spool.Of(file)
	}
	if err != nil {
		_, _ = file.Close(), os.Remove(name)
		return nil, err
	}
	return p, nil
}

// partName is found again by a resumed task, and by nobody else.
func partName(path, id string) string {
	const longest = 255 - len("..12345678.part") // of a name
	dir, base := filepath.Split(path)
	return filepath.Join(dir, "."+base[:min(len(base), longest)]+"."+id[max(0, len(id)-8):]+".part")
}

// install puts the file in the place of the other. It is not forced to the disk first: neither is the outcome in the journal, and a
// download that a power cut took can be repeated.
func (p *part) install() error {
	err := p.body.Close()
	if err == nil {
		err = os.Rename(p.name, p.path)
	}
	if err != nil {
		_ = os.Remove(p.name)
	}
	return err
}

// drop removes it. There may be none.
func (p *part) drop() {
	if p == nil {
		return
	}
	_, _ = p.body.Close(), os.Remove(p.name)
}
