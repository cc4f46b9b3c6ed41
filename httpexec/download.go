package httpexec

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// rangeError says that a server's answer to a request for the rest of a body cannot be used, or that there is more to ask for.
type rangeError struct{ text string }

func (e *rangeError) Error() string { return e.text }

// ask makes a request one for the rest of what an earlier attempt got. A range of the user's own is left alone.
func (a *attempt) ask(h *hop) {
	a.continues = h.method == http.MethodGet && h.body == nil && value(h.header, "Range") == "" && value(h.header, "If-Range") == ""
	if !a.continues || a.unfinished == nil {
		return
	}
	h.header.Set("Range", fmt.Sprintf("bytes=%d-", a.unfinished.body.Size()))
	h.header.Set("If-Range", a.unfinished.validator)
	a.ranged = true
}

// place decides where the body of a reply goes: behind what is there already, or to a new beginning.
func (a *attempt) place(response *http.Response) error {
	switch {
	case a.ranged && response.StatusCode == http.StatusPartialContent:
		return a.goOn(response)
	case a.ranged && response.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return a.beyond(response)
	case !a.ranged && a.isPart(response):
		return &rangeError{"the server sent a part, and all was asked for"}
	case response.StatusCode < 300:
		a.forget()
	}
	return a.begin(response.StatusCode)
}

// isPart reports whether a reply is a part of what was asked for, although nobody asked for a part.
func (a *attempt) isPart(response *http.Response) bool {
	part, ok := parseContentRange(response.Header.Get("Content-Range"))
	return response.StatusCode == http.StatusPartialContent && value(a.first.header, "Range") == "" && ok && (part.first > 0 || part.total > part.last+1)
}

// begin takes an empty place for a body. What may go to a file goes there at once.
func (a *attempt) begin(status int) error {
	a.reply.inPart = a.beside != nil && status < 300 && !a.asked.Include
	if !a.reply.inPart {
		a.reply.body = newSpool(a.Temporary)
		return nil
	}
	a.reply.body = a.beside.body
	if err := a.reply.body.Truncate(); err != nil {
		return &localError{"keep the reply", err, exitWrite}
	}
	return nil
}

// goOn takes in a part that fits what is there.
func (a *attempt) goOn(response *http.Response) error {
	before, r := a.unfinished, &a.reply
	part, err := before.next(response)
	if err != nil {
		a.forget()
		return err
	}
	r.body, r.inPart, r.validator = before.body, before.inPart, before.validator
	r.end, r.total = part.last+1, part.total
	if part.total < 0 {
		r.total = before.total
	}
	a.resumed = before.body.Size()
	return nil
}

// beyond is for a server that has nothing more: then everything was there, and only its end was not seen.
func (a *attempt) beyond(response *http.Response) error {
	before := a.unfinished
	part, ok := parseContentRange(response.Header.Get("Content-Range"))
	size := before.body.Size()
	if !ok || part.total != size || (before.total >= 0 && before.total != size) {
		a.forget()
		return &rangeError{"the server has not the rest that was asked for: the next attempt begins anew"}
	}
	a.reply = *before
	a.reply.whole = true
	a.unfinished = nil
	return nil
}

// next checks that a reply brings what follows the body so far, and that both are of one file.
func (r *reply) next(response *http.Response) (contentRange, error) {
	part, ok := parseContentRange(response.Header.Get("Content-Range"))
	length := part.last - part.first + 1
	sameSize := part.total < 0 || r.total < 0 || part.total == r.total
	if !ok || part.first != r.body.Size() || !sameSize || (response.ContentLength >= 0 && response.ContentLength != length) {
		return part, &rangeError{"the server sent another part than was asked for: the next attempt begins anew"}
	}
	if !r.isOf(response) {
		return part, &rangeError{"the server sent a part, and not that it is one of the same file: the next attempt begins anew"}
	}
	return part, nil
}

// isOf reports whether a reply is about the same file in the same state. A server has to repeat a tag (RFC 9110, section 15.3.7): one that
// does not may know Range and not If-Range. It may leave out a date that it was given; elsewhere it has to say.
func (r *reply) isOf(response *http.Response) bool {
	header := response.Header
	if strings.HasPrefix(r.validator, `"`) {
		return header.Get("Etag") == r.validator
	}
	if given := header.Get("Last-Modified"); given != "" {
		return given == r.validator
	}
	return r.url != nil && response.Request != nil && r.url.String() == response.Request.URL.String()
}

// check compares the size of the body with what the server said of it.
func (a *attempt) check() error {
	r := &a.reply
	size := r.body.Size()
	switch {
	case !a.ranged || r.status != http.StatusPartialContent:
		return nil
	case size > r.end:
		a.forget()
		return &rangeError{"the server sent more than the part that it announced: the next attempt begins anew"}
	case size < r.end, r.total > size:
		return &rangeError{fmt.Sprintf("%d bytes of %d came", size, max(r.end, r.total))}
	}
	return nil
}

// remember keeps what came of a body that was cut, where the rest of it can be asked for.
func (a *attempt) remember(response *http.Response, err error) {
	r := &a.reply
	if r.status != http.StatusOK && (!a.ranged || r.status != http.StatusPartialContent) {
		return
	}
	if r.status == http.StatusOK {
		r.validator = validatorOf(response.Header)
	}
	mine := a.unfinished != nil || r.status == http.StatusOK // check may have given up
	a.unfinished = nil
	if err == nil || !mine || !a.continues || a.Options.Compressed || errors.As(err, new(*localError)) {
		return
	}
	if r.validator != "" && r.body.Size() > 0 && sendsRanges(response.Header) {
		kept := *r
		a.unfinished = &kept
	}
}

// forget lets go of what an earlier attempt got.
func (e *Executor) forget() {
	e.unfinished.drop()
	e.unfinished = nil
}

func sendsRanges(header http.Header) bool {
	return !strings.EqualFold(strings.TrimSpace(header.Get("Accept-Ranges")), "none")
}

// surelyOlder is how much older than a reply a file has to be for its date to tell it from a later state, whatever the clocks.
const surelyOlder = time.Minute

// validatorOf returns what If-Range can be asked with: RFC 9110, sections 13.1.5 and 8.8.2.2. Empty: nothing.
func validatorOf(header http.Header) string {
	tag := header.Get("Etag")
	if tag != "" {
		if len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' { // a weak one
			return ""
		}
		return tag
	}
	modified, err := http.ParseTime(header.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	sent, err := http.ParseTime(header.Get("Date"))
	if err != nil || sent.Sub(modified) < surelyOlder {
		return ""
	}
	return header.Get("Last-Modified")
}
