package request

import (
	"fmt"
	"strings"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/task"
)

// Details implements task.Target.
func (r *Request) Details(finished bool, mask string) task.Details {
	rows := [][2]string{{"Request", r.Title()}}
	headers := ShownHeader(r, mask)
	label := "Headers"
	for _, line := range headers {
		rows = append(rows, [2]string{label, line})
		label = ""
	}
	rows = append(rows, [][2]string{
		{"User", r.userDetail()}, {"Body", r.bodyDetail(finished)}, {"Network", r.Network.detail()}, {"Output", r.Output},
	}...)
	for i := range rows {
		rows[i][1] = text.MaskPattern(rows[i][1], mask)
	}
	return task.Details{
		Rows: rows,
		Key:  r.keyDetail(),
		JSON: struct {
			Method  string   `json:"method"`
			URL     string   `json:"url"`
			Headers []string `json:"headers"`
		}{r.Method, text.MaskPattern(MaskURL(r.URL), mask), headers},
	}
}

// ShownHeader returns the header lines of a request without their secrets.
func ShownHeader(r *Request, mask string) []string {
	lines := make([]string, len(r.Header))
	for i, line := range r.Header {
		lines[i] = text.MaskPattern(maskHeader(line), mask)
	}
	return lines
}

func (r *Request) userDetail() string {
	colon := strings.IndexByte(blankReferences(r.User), ':')
	switch {
	case colon < 0:
		return r.User
	case colon == len(r.User)-1: // the name may be a key
		return MaskUser(r.User)
	}
	return r.User[:colon] + ", with a password"
}

// bodyDetail names the files of a body. Of a text it tells the length alone: there may be secrets in it. What was read
// from stdin is kept until the task is finished.
func (r *Request) bodyDetail(finished bool) string {
	parts := make([]string, len(r.Body))
	for i := range r.Body {
		parts[i] = r.Body[i].detail(finished)
	}
	detail := strings.Join(parts, ", ")
	if detail != "" && r.Get {
		detail += ", in the URL"
	}
	return detail
}

func (p *Part) detail(finished bool) string {
	detail := text.Size(int64(len(p.Text))) + " of text"
	switch {
	case p.Blob != "":
		detail = fmt.Sprintf("sha256:%s (%s)", p.Blob, text.Size(p.Size))
	case p.File == StdinFile && p.Size == 0:
		detail = "stdin"
	case p.File == StdinFile && !finished:
		detail = fmt.Sprintf("stdin (%s kept)", text.Size(p.Size))
	case p.File == StdinFile:
		detail = fmt.Sprintf("stdin (%s)", text.Size(p.Size))
	case p.File != "" && p.Time.IsZero() && p.Size == 0:
		detail = "@" + p.File
	case p.File != "":
		detail = fmt.Sprintf("@%s (%s)", p.File, text.Size(p.Size))
	}
	if p.Name != "" {
		return p.Name + "=" + detail
	}
	return detail
}

// detail says how the server is reached, where that is not the usual way.
func (n *Network) detail() string {
	var parts []string
	for _, part := range []struct {
		is   bool
		text string
	}{
		{n.UnixSocket != "", "over " + n.UnixSocket},
		{n.Proxy != "", "proxy " + MaskURL(n.Proxy)},
		{len(n.Resolve) > 0, "resolved as " + strings.Join(n.Resolve, " ")},
		{n.ConnectTimeout > 0, "connect timeout " + text.FormatDuration(n.ConnectTimeout)},
		{n.Insecure, "certificate not checked"},
		{n.CACert != "", "CA " + n.CACert},
		{n.Cert != "", "certificate " + n.Cert},
		{n.HTTP1, "HTTP/1.1"},
		{n.Compressed, "compressed"},
		{n.MaxRedirects > 0, "redirects followed"},
		{n.MaxRedirects < 0, "redirects refused"},
	} {
		if part.is {
			parts = append(parts, part.text)
		}
	}
	return strings.Join(parts, ", ")
}

func (r *Request) keyDetail() string {
	switch {
	case !r.SendsKey():
		return "not sent"
	case r.KeyStyle == KeySF:
		return "sent in quotes, as the IETF's draft asks"
	}
	return "sent as Idempotency-Key"
}
