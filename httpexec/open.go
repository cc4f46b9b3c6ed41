package httpexec

import (
	"net/http"
	"os"

	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

// requestOf returns what a task asks for.
func requestOf(t *task.Task) *request.Request {
	if r := request.Of(t); r != nil {
		return r
	}
	return &request.Request{}
}

// open makes sure, before anything is sent, that the reply can be written where it should be.
func (a *attempt) open(t *task.Task) error {
	path := a.asked.Output
	if path == "" || a.beside != nil {
		return nil
	}
	d, err := destinationOf(path)
	if err == nil && !d.through {
		a.beside, err = newPart(d, t.ID)
	}
	return outputError(path, err)
}

// record has the header of the next reply remembered.
func (a *attempt) record(h hop) {
	if !a.asked.Include {
		return
	}
	a.watch.heard = &recorder{}
	if h.url.Scheme == "http" {
		a.watch.plain = a.watch.heard
	}
}

// keepHead adds a reply's header to those of the attempt, as curl shows them all.
func (a *attempt) keepHead(response *http.Response) {
	if !a.asked.Include {
		return
	}
	head := a.watch.heard.head()
	if head == nil || response.ProtoMajor != 1 {
		head = shownHead(response)
	}
	a.head = append(a.head, head...)
	a.reply.head = a.head
}

func newSpool(create func() (*os.File, error)) *spool.Spool {
	return spool.New(spool.MemoryLimit, create)
}
