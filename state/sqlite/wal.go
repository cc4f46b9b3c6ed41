package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/10f93571/retry/state/sqlite/conn"
)

// The layout of a WAL, see https://sqlite.org/fileformat2.html#walformat: numbers are big-endian.
const (
	walHeaderSize   = 32
	walMagic        = 0x377f0682 // the last bit says in which order the checksum reads its bytes
	frameHeaderSize = 24
)

// hasNoTables reports whether a database is empty, or is one page that lists no table, see
// https://sqlite.org/fileformat2.html#b_tree_pages: those of a new journal are all in its WAL at first.
func hasNoTables(path string, size int64) bool {
	const pageSize, cellCount = 4096, 103 // the size of a page, and the place of the number of its cells
	if size == 0 || size > pageSize {
		return size == 0
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, cellCount+2)
	_, err = f.ReadAt(head, 0)
	cells := binary.BigEndian.Uint16(head[cellCount:])
	return err == nil && bytes.HasPrefix(head, []byte("SQLite format 3\x00")) && cells == 0
}

// errUnreadWAL says that SQLite sees nothing of what was committed to a WAL.
var errUnreadWAL = errors.New("the WAL holds tasks that cannot be read")

// walReads is how often a header is read that does not fit: another process may be writing it.
const walReads = 3

// soundWAL reports whether the header of a WAL fits its checksum. SQLite takes any other WAL for an empty one and
// overwrites it, so that a journal would lose its newest tasks without a word. It reports true where it cannot tell:
// SQLite will. No lock is lost with the descriptor, as SQLite locks other files.
func soundWAL(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	header := make([]byte, walHeaderSize)
	for range walReads {
		if _, err := f.ReadAt(header, 0); err != nil || soundHeader(header) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func soundHeader(header []byte) bool {
	number := binary.BigEndian.Uint32
	word := binary.LittleEndian.Uint32
	if number(header)&1 == 1 {
		word = number
	}
	var a, b uint32
	for rest := header[:24]; len(rest) > 0; rest = rest[8:] {
		a += word(rest) + b
		b += word(rest[4:]) + a
	}
	return number(header)&^1 == walMagic && number(header[24:]) == a && number(header[28:]) == b
}

// holdsTasks reports whether a WAL holds the ends of several transactions of its generation, whether or not SQLite can
// read what is before them. The first one makes the schema. The caller has the write lock: while another process
// commits, SQLite does not yet see the end of its transaction.
func holdsTasks(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	header, frame := make([]byte, walHeaderSize), make([]byte, frameHeaderSize)
	if _, err := f.ReadAt(header, 0); err != nil {
		return false
	}
	pageSize, salt := binary.BigEndian.Uint32(header[8:]), header[16:24]
	commits := 0
	for at := int64(walHeaderSize); commits < 2; at += frameHeaderSize + int64(pageSize) {
		if _, err := f.ReadAt(frame, at); err != nil {
			return false
		}
		if size := binary.BigEndian.Uint32(frame[4:]); size != 0 && bytes.Equal(frame[8:16], salt) {
			commits++
		}
	}
	return true
}

// syncLog waits until the disk holds what was committed. With synchronous=FULL, SQLite would hold the write lock during
// the sync; here other processes write meanwhile.
func (j *Journal) syncLog() error {
	conn.Step("transaction not synced")
	path := filepath.Join(j.dir, DatabaseName+walSuffix)
	file, err := os.OpenFile(path, os.O_RDWR, 0) // Windows syncs writable files only
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return conn.SyncData(file)
}

const (
	// walPages is the WAL's length from which it is copied into the database. The first process that opens the journal
	// reads the whole WAL, at a microsecond a page; a copy waits for the disk three or four times.
	walPages = 64
	// longLog is the length from which the copy keeps other writers out. Their writes can keep SQLite from restarting
	// the WAL, and from a thousand pages on SQLite would copy it in every COMMIT.
	longLog = 4 * walPages
)

// shortenLog copies a long WAL into the database. It runs beside the command, and leaves errors to the next write.
func (j *Journal) shortenLog() {
	var pages, copied int
	err := j.conn.Use(func() (err error) {
		pages, copied, err = j.conn.Checkpoint("NOOP")
		return err
	})
	if err != nil || pages-copied < walPages {
		return
	}
	if pages >= longLog {
		ctx, cancel := context.WithTimeout(context.Background(), conn.BusyTimeout)
		defer cancel()
		defer j.owners.Queue(ctx)()
	}
	_ = j.conn.Use(func() error {
		_, _, err := j.conn.Checkpoint("PASSIVE")
		return err
	})
}

const (
	// queueLog is the length of the WAL from which a queue has it copied: 16 MB, as each page is written many times.
	queueLog = 4000
	// longestQueueLog is where a COMMIT copies it after all, since copyLog does not keep up.
	longestQueueLog = 8 * queueLog
	// copyPause is how often the length is looked at.
	copyPause = 50 * time.Millisecond
	// copyPatience is how long the writer waits for reads that have begun.
	copyPatience = 5 * time.Millisecond
)

// copyLog copies the WAL of a queue into the database when it is long. A copy waits for the disk for tens of
// milliseconds: most of it is done beside the writer, and only what came meanwhile between two transactions, so that
// SQLite begins the WAL anew.
func (q *Queue) copyLog(c *conn.Conn) {
	defer func() { _ = c.Close() }()
	for {
		select {
		case <-q.grown:
		case <-q.stopped:
			return
		}
		var pages int
		_ = c.Use(func() (err error) {
			if pages, _, err = c.Checkpoint("NOOP"); err == nil && pages >= queueLog {
				_, _, err = c.Checkpoint("PASSIVE")
			}
			return err // the next COMMIT tells
		})
		if pages >= queueLog {
			select {
			case q.between <- q.copyRest:
			case <-q.stopped:
				return
			}
		}
		select {
		case <-time.After(copyPause):
		case <-q.stopped:
			return
		}
	}
}

// copyRest copies what is left of the WAL, and has SQLite begin it anew. No process writes meanwhile, and this one does
// not read: a reader keeps the WAL as it is.
func (q *Queue) copyRest() {
	ctx, cancel := context.WithTimeout(context.Background(), conn.BusyTimeout)
	defer cancel()
	defer q.owners.Queue(ctx)()
	patience := time.After(copyPatience)
wait:
	for range q.opened {
		select {
		case c := <-q.readers:
			defer func() { q.readers <- c }()
		case <-patience:
			break wait
		}
	}
	_ = q.conn.Use(func() error {
		_, _, err := q.conn.Checkpoint("RESTART")
		return err
	})
}
