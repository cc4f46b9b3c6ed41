package cmdexec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// ReplayedStdin gives every attempt the same bytes. They are read from the source only as the attempts ask for more, passed on
// as they come, and kept for the next attempt.
type ReplayedStdin struct {
	source   *os.File // nil where everything is kept already
	kept     *spool.Spool
	complete func() error // called once, when everything is kept

	reading   chan struct{} // holds one while the source is read, which may take for ever
	position  int64         // how much was read of it; guarded by reading
	mutex     sync.Mutex    // guards what follows
	ended     bool          // the source has no more
	broken    error         // of reading the source: no attempt gets the rest
	unkept    error         // of keeping what was read: no later attempt gets it
	completed sync.WaitGroup
}

// Replay keeps what it reads from source in kept, and calls complete when that is everything.
func Replay(source *os.File, kept *spool.Spool, complete func() error) *ReplayedStdin {
	return &ReplayedStdin{source: source, kept: kept, complete: complete, reading: make(chan struct{}, 1)}
}

// ReplayKept replays what was kept by an earlier run.
func ReplayKept(kept *spool.Spool) *ReplayedStdin {
	return &ReplayedStdin{kept: kept, position: kept.Size(), ended: true, reading: make(chan struct{}, 1)}
}

// Wait returns when what was read to its end is safely kept.
func (r *ReplayedStdin) Wait() {
	r.mutex.Lock() // a late end of the source comes before or after
	defer r.mutex.Unlock()
	r.completed.Wait()
}

func (r *ReplayedStdin) open() (*input, error) {
	if err := r.lost(); err != nil {
		return nil, err
	}
	file, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	return &input{
		file: file,
		fed: func() {
			_ = file.Close()
			go r.feed(feed, over)
		},
		end: func() error {
			close(over)
			_, _ = feed.Close(), file.Close() // what nobody read is of no use any more
			return r.failure()
		},
	}, nil
}

// lost returns why another attempt cannot have the same stdin as the first.
func (r *ReplayedStdin) lost() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.unkept != nil {
		return &stdinError{fmt.Errorf("its stdin could not be kept for another attempt: %w", r.unkept)}
	}
	return nil
}

// failure returns why the attempt had to do with a part of stdin.
func (r *ReplayedStdin) failure() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.broken != nil {
		return &stdinError{fmt.Errorf("read stdin: %w", r.broken)}
	}
	return nil
}

// feedSize is how much is read at a time: as much as a pipe holds.
const feedSize = 64 << 10

// feed writes everything to an attempt's pipe, until that is closed or read no more, or the attempt is over.
func (r *ReplayedStdin) feed(pipe *os.File, over <-chan struct{}) {
	defer func() { _ = pipe.Close() }()
	buffer := make([]byte, feedSize)
	for offset := int64(0); ; {
		if n, err := r.kept.GiveTo(pipe, offset); err == nil {
			offset += int64(n)
			continue
		}
		n, err := r.next(buffer, offset, over)
		if n > 0 {
			if _, err := pipe.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
		offset += int64(n)
	}
}

// next returns what follows offset: from what is kept, else from the source. It waits for its turn there as long as the attempt
// is not over.
func (r *ReplayedStdin) next(p []byte, offset int64, over <-chan struct{}) (int, error) {
	if offset < r.kept.Size() {
		return r.again(p, offset)
	}
	select {
	case r.reading <- struct{}{}:
	default: // an earlier attempt's feed waits for more
		select {
		case r.reading <- struct{}{}:
		case <-over:
			return 0, os.ErrClosed
		}
	}
	defer func() { <-r.reading }()
	if offset < r.kept.Size() { // another attempt's feed has read it meanwhile
		return r.again(p, offset)
	}
	if err := r.exhausted(offset); err != nil {
		return 0, err
	}
	n, err := r.source.Read(p)
	r.position += int64(n)
	if n > 0 {
		r.keep(p[:n])
	}
	if err != nil {
		r.finish(err)
	}
	return n, err
}

func (r *ReplayedStdin) again(p []byte, offset int64) (int, error) {
	n, err := r.kept.ReadAt(p, offset)
	if n > 0 {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // somebody has cut the file
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.broken = err
	return 0, err
}

// exhausted returns why the source has nothing for an attempt that got as far as offset; nil where it has.
func (r *ReplayedStdin) exhausted(offset int64) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch {
	case r.broken != nil:
		return r.broken
	case offset != r.position: // an earlier attempt had what could not be kept
		r.broken = r.unkept
		return r.broken
	case r.ended:
		return io.EOF
	}
	return nil
}

func (r *ReplayedStdin) keep(p []byte) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.unkept == nil {
		_, r.unkept = r.kept.Write(p)
	}
}

// finish notes that the source gives no more, and has what is kept completed: without waiting, since that can take the disk long.
func (r *ReplayedStdin) finish(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !errors.Is(err, io.EOF) {
		r.broken = err
		return
	}
	r.ended = true
	if r.unkept != nil || r.complete == nil {
		return
	}
	r.completed.Go(func() { _ = r.complete() }) // where it fails, a resume says what is missing
}

// stdinError says that an attempt's stdin is not what it should be.
type stdinError struct{ error }

func (e *stdinError) Unwrap() error { return e.error }

// outcome is that of an attempt whose end means nothing, since its stdin was cut or could not be had. It is not tried again: the
// next one would not have it either.
func (e *stdinError) outcome() task.Outcome {
	return task.Outcome{Exit: task.ExitInternal, Error: task.ErrorStart, Message: e.Error()}
}
