package render

import (
	"fmt"
	"strings"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// targetJSON is the method and the URL of a request.
type targetJSON struct {
	Method string `json:"method"`
	URL    string `json:"url"`
}

// requestJSON is the request of a task of HTTP, with its secrets masked.
type requestJSON struct {
	targetJSON
	Headers []string `json:"headers"`
}

func requestToJSON(r *task.Request) *requestJSON {
	if r == nil {
		return nil
	}
	headers := make([]string, len(r.Header))
	for i, line := range r.Header {
		headers[i] = task.MaskHeader(line)
	}
	return &requestJSON{targetJSON{Method: r.Method, URL: task.MaskURL(r.URL)}, headers}
}

// Title is what a task does in one line: its command, or its request with the secrets masked.
func Title(t *task.Task) string { return titleUpTo(t, maxTitle) }

// maxTitle is the limit of a title that is not shortened.
const maxTitle = 1 << 20

// titleUpTo writes the first characters of a title, at most as many as are shown.
func titleUpTo(t *task.Task, most int) string {
	switch {
	case t.Request != nil:
		return text.Escape(text.Shorten(t.Request.Shown(), most))
	case t.Kind == task.KindHTTP:
		return "a request that cannot be read"
	}
	return commandUpTo(t.Command, most)
}

// requestFacts are the lines about the request of a task; none for a command.
func requestFacts(t *task.Task) [][2]string {
	r := t.Request
	if r == nil {
		return nil
	}
	facts := [][2]string{{"Request", titleUpTo(t, longLine)}}
	for i, line := range r.Header {
		facts = append(facts, [2]string{onlyFirst(i, "Headers"), wholeLine(task.MaskHeader(line))})
	}
	return append(facts, [][2]string{
		{"User", userOf(r)}, {"Body", bodyOf(t)}, {"Network", networkOf(&r.Network)}, {"Output", wholeLine(r.Output)},
	}...)
}

// onlyFirst titles the first of several lines.
func onlyFirst(i int, title string) string {
	if i > 0 {
		return ""
	}
	return title
}

func userOf(r *task.Request) string {
	colon := strings.IndexByte(task.BlankReferences(r.User), ':')
	if colon == len(r.User)-1 { // a key, perhaps
		return brief(task.MaskUser(r.User))
	}
	if colon < 0 {
		return brief(r.User)
	}
	return brief(r.User[:colon]) + ", with a password"
}

// bodyOf names the files of a body. Of a text it shows the length only, as there may be secrets in it.
func bodyOf(t *task.Task) string {
	var parts []string
	for i := range t.Request.Body {
		parts = append(parts, partOf(&t.Request.Body[i], !t.Status.Finished()))
	}
	text := strings.Join(parts, ", ")
	if text != "" && t.Request.Get {
		text += ", in the URL"
	}
	return text
}

func partOf(p *task.Part, kept bool) string {
	part := fmt.Sprintf("%s of text", text.Size(int64(len(p.Text))))
	switch {
	case p.File == task.StdinFile && p.Size == 0:
		part = "stdin"
	case p.File == task.StdinFile && kept:
		part = fmt.Sprintf("stdin (%s kept)", text.Size(p.Size))
	case p.File == task.StdinFile:
		part = fmt.Sprintf("stdin (%s)", text.Size(p.Size))
	case p.File != "" && p.Time.IsZero() && p.Size == 0:
		part = "@" + brief(p.File)
	case p.File != "":
		part = fmt.Sprintf("@%s (%s)", brief(p.File), text.Size(p.Size))
	}
	if p.Name != "" {
		return brief(p.Name) + "=" + part
	}
	return part
}

// networkOf writes in one line those network options that differ from the defaults.
func networkOf(n *task.Network) string {
	var parts []string
	add := func(yes bool, text string) {
		if yes {
			parts = append(parts, text)
		}
	}
	add(n.UnixSocket != "", "over "+brief(n.UnixSocket))
	add(n.Proxy != "", "proxy "+brief(task.MaskURL(n.Proxy)))
	add(len(n.Resolve) > 0, "resolved as "+brief(strings.Join(n.Resolve, " ")))
	add(n.ConnectTimeout > 0, "connect timeout "+text.FormatDuration(n.ConnectTimeout))
	add(n.Insecure, "certificate not checked")
	add(n.CACert != "", "CA "+brief(n.CACert))
	add(n.Cert != "", "certificate "+brief(n.Cert))
	add(n.HTTP1, "HTTP/1.1")
	add(n.Compressed, "compressed")
	add(n.MaxRedirects > 0, "redirects followed")
	add(n.MaxRedirects < 0, "redirects refused")
	return strings.Join(parts, ", ")
}

// optionsOf writes the options of a task. For the captured output it uses the values of retry http.
func optionsOf(t *task.Task) string {
	o := t.Options
	if t.Kind == task.KindHTTP {
		o.Capture = map[task.CaptureMode]task.CaptureMode{"": "none", task.CaptureStderr: "", task.CaptureBoth: "all"}[o.Capture]
	}
	return Options(&o)
}

// keyOf is the task's idempotency key, and how it is sent.
func keyOf(t *task.Task) string {
	text := brief(t.IdempotencyKey)
	switch r := t.Request; {
	case r == nil, text == "":
		return text
	case !r.SendsKey():
		return text + " (not sent)"
	case r.KeyStyle == task.KeySF:
		return text + " (sent in quotes, as the IETF's draft asks)"
	}
	return text + " (sent as Idempotency-Key)"
}
