package httpexec

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/10f93571/retry/httpexec/download"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/internal/spool"
	"github.com/10f93571/retry/task"
)

const anew = ": the next attempt begins anew"

// checkContinues decides whether the attempt may ask for the rest of a body: not if the user's headers ask for a range.
func (a *attempt) checkContinues() {
	h := &a.first
	a.continues = a.Delivery == nil && h.method == http.MethodGet && h.body == nil &&
		request.Value(h.header, "Range") == "" && request.Value(h.header, "If-Range") == ""
	if a.continues && a.unfinished != nil {
		a.note(a.unfinished)
		a.noted = true
	}
}

// askForRest has a request ask for the part of the body that earlier attempts did not receive. A validator holds for
// one URL only (RFC 9110, section 8.8): the request of any other URL, before or after a redirect, asks for the whole
// body.
func (a *attempt) askForRest(h *wireRequest) {
	if !a.continues || a.unfinished == nil {
		return
	}
	h.header = h.header.Clone() // that of the first request stays as the user gave it
	request.Remove(h.header, "Range")
	request.Remove(h.header, "If-Range")
	a.ranged = download.SourceOf(h.url) == a.unfinished.source
	if a.ranged {
		h.header.Set("Range", fmt.Sprintf("bytes=%d-", a.unfinished.body.Size()))
		h.header.Set("If-Range", a.unfinished.validator)
	}
}

// note has the journal keep what the part file holds from now on, so that a resume can go on after a kill.
func (a *attempt) note(r *reply) {
	if !r.inPart || !a.notes() {
		return
	}
	state := r.state()
	state.Boot = a.Boot()
	if state.Validator != "" || a.noted { // the state that checkContinues has noted holds no longer
		_ = a.started(state.String())
	}
}

// state says what a part file holds with a reply.
func (r *reply) state() *download.State {
	return &download.State{Validator: r.validator, Source: r.source, Encoding: r.encoding, Total: r.total}
}

// notes reports whether the journal can keep what the part file holds.
func (a *attempt) notes() bool {
	return a.continues && !a.network.Compressed && a.started != nil && a.Boot != nil && a.Boot() != ""
}

// adopt continues the download of which an earlier run of the task has left a part.
func (a *attempt) adopt(t *task.Task, d download.Destination) (err error) {
	var left *download.State
	if a.Boot != nil && t.Last.Process != "" {
		left = download.StateOf(t.Last.Process, a.Boot())
	}
	if a.partFile, err = download.NewPartFile(d, t.ID, left); err == nil && a.number > 1 {
		a.partFile.RemoveOthers()
	}
	if err == nil && left != nil && a.partFile.Body.Size() > 0 {
		a.unfinished = &reply{status: http.StatusOK, body: a.partFile.Body, inPart: true, source: left.Source,
			validator: left.Validator, encoding: left.Encoding, end: left.Total, total: left.Total}
	}
	return err
}

// prepareBody decides where the body of a reply is written: after the bytes of earlier attempts, or to an empty spool.
func (a *attempt) prepareBody(response *http.Response) error {
	switch {
	case a.ranged && response.StatusCode == http.StatusPartialContent:
		return a.appendPart(response)
	case a.ranged && response.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return a.checkComplete(response)
	case a.ranged && a.misreadsRange(response):
		a.dropUnfinished()
		return download.RangeError("the server sent neither the rest that was asked for nor all" + anew)
	case !a.ranged && a.isPart(response):
		return download.RangeError("the server sent a part, and all was asked for")
	case response.StatusCode < 300:
		a.dropUnfinished()
	}
	return a.newBody(response.StatusCode)
}

// isPart reports whether a reply is a part although the request did not ask for one. A server may send all bytes as one
// part, but it has to show that these are all. A page of rows, as an API sends it, is no part of a file.
func (a *attempt) isPart(response *http.Response) bool {
	if response.StatusCode != http.StatusPartialContent || request.Value(a.first.header, "Range") != "" ||
		download.CountsOther(response.Header) {
		return false
	}
	part, ok := download.PartOf(response.Header)
	return !ok || part.First > 0 || part.Total != part.Last+1 || part.Total != response.ContentLength
}

// misreadsRange reports whether a reply to a request for the rest holds neither the rest nor the whole: it is a part
// under the status of the whole, or status 304, for which the user's headers have no condition.
func (a *attempt) misreadsRange(response *http.Response) bool {
	if response.StatusCode == http.StatusNotModified {
		return !a.isConditional()
	}
	part, ok := download.PartOf(response.Header)
	return response.StatusCode < 300 && ok && part.First > 0
}

// isConditional reports whether a request asks for what is new alone.
func (a *attempt) isConditional() bool {
	return request.Value(a.latest.header, "If-None-Match") != "" ||
		request.Value(a.latest.header, "If-Modified-Since") != ""
}

// newBody starts an empty body: in the part file if it becomes the file of -o as it is.
func (a *attempt) newBody(status int) error {
	if a.continues { // a delivery begins anew each time
		a.reply.source = download.SourceOf(a.latest.url)
	}
	a.reply.inPart = a.partFile != nil && status < 300 && !a.request.Include
	if !a.reply.inPart {
		a.reply.body = spool.New(spool.MemoryLimit, a.Temporary)
		return nil
	}
	a.reply.body = a.partFile.Body
	if status == http.StatusOK {
		a.reply.validator = download.ValidatorOf(a.reply.header)
	}
	version := ""
	if a.notes() {
		version = a.reply.state().Version()
	}
	if err := a.partFile.Begin(version); err != nil {
		return &localError{"keep the reply", err, exitWrite}
	}
	a.note(&a.reply)
	return nil
}

// appendPart checks a part, and has it written after the bytes of earlier attempts.
func (a *attempt) appendPart(response *http.Response) error {
	before, r := a.unfinished, &a.reply
	part, err := before.next(response)
	if err != nil {
		a.dropUnfinished()
		return err
	}
	r.body, r.inPart, r.source, r.validator = before.body, before.inPart, before.source, before.validator
	r.end, r.total, r.head = part.Last+1, part.Total, before.head // the header of a part would be wrong about the whole
	if part.Total < 0 {
		r.total = before.total
	}
	a.resumed = before.body.Size()
	return nil
}

// checkComplete handles status 416, "range not satisfiable": an earlier attempt received all bytes, and only the end of
// the reply was missing. Which encoding has that size it does not say.
func (a *attempt) checkComplete(response *http.Response) error {
	before := a.unfinished
	part, ok := download.ParseContentRange(response.Header.Get("Content-Range"))
	size := before.body.Size()
	sameSize := before.total == size || before.total < 0 && before.encoding == ""
	if !ok || part.Total != size || !sameSize || before.contradicts(response.Header) {
		a.dropUnfinished()
		return download.RangeError("the server has not the rest that was asked for" + anew)
	}
	a.reply = *before
	a.reply.whole = true
	a.unfinished = nil
	return nil
}

// next checks that a reply continues the body so far, and that both belong to the same file.
func (r *reply) next(response *http.Response) (download.ContentRange, error) {
	part, ok := download.PartOf(response.Header)
	length := part.Last - part.First + 1
	sameSize := part.Total < 0 || r.total < 0 || part.Total == r.total
	sameLength := response.ContentLength < 0 || response.ContentLength == length
	if !ok || part.First != r.body.Size() || !sameSize || !sameLength {
		return part, download.RangeError("the server sent another part than was asked for" + anew)
	}
	if !r.isOf(response) {
		return part, download.RangeError("the server sent a part, and not that it is one of the same file" + anew)
	}
	return part, nil
}

// isOf reports whether a reply of the same URL is about the same version of the file. A server must repeat a tag
// (RFC 9110, section 15.3.7): without it, the server may have ignored If-Range. It need not repeat a date. A tag should
// differ between encodings of a file, and some servers give them the same one.
func (r *reply) isOf(response *http.Response) bool {
	header := response.Header
	if download.EncodingOf(header) != r.encoding {
		return false
	}
	if strings.HasPrefix(r.validator, `"`) {
		return header.Get("Etag") == r.validator
	}
	return !r.contradicts(header)
}

// contradicts reports whether a header names another version of the file.
func (r *reply) contradicts(header http.Header) bool {
	given := header.Get("Last-Modified")
	if strings.HasPrefix(r.validator, `"`) {
		given = header.Get("Etag")
	}
	return given != "" && given != r.validator
}

// errSurplus says that a part is longer than its header says. What is too much is not written.
const errSurplus = download.RangeError("the server sent more than the part that it announced" + anew)

// checkRange compares the size of the body with the size that the server announced. A part of a file of unknown size
// proves no end, unless the next request finds that nothing is left.
func (a *attempt) checkRange() error {
	r := &a.reply
	size := r.body.Size()
	switch {
	case !a.ranged || r.status != http.StatusPartialContent:
		return nil
	case size < r.end, r.total > size:
		return download.RangeError(fmt.Sprintf("%d bytes of %d came", size, max(r.end, r.total)))
	case r.total < 0:
		return download.RangeError(fmt.Sprintf("%d bytes came, and the server does not say of how many", size))
	}
	return nil
}

// keepUnfinished keeps a body that was cut if the next attempt can ask for the rest.
func (a *attempt) keepUnfinished(response *http.Response, err error) {
	r := &a.reply
	if r.status != http.StatusOK && (!a.ranged || r.status != http.StatusPartialContent) {
		return
	}
	if r.status == http.StatusOK {
		r.validator = download.ValidatorOf(response.Header)
	}
	usable := a.unfinished != nil || r.status == http.StatusOK // checkRange may have dropped it
	a.unfinished = nil
	if err == nil || !usable || !a.continues || a.network.Compressed || errors.As(err, new(*localError)) {
		return
	}
	ranges := strings.TrimSpace(response.Header.Get("Accept-Ranges"))
	if r.validator != "" && r.body.Size() > 0 && !strings.EqualFold(ranges, "none") {
		kept := *r
		a.unfinished = &kept
	}
}

// dropUnfinished frees what an earlier attempt received.
func (e *Executor) dropUnfinished() {
	e.unfinished.drop()
	e.unfinished = nil
}
