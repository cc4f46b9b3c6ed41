package render

import (
	"github.com/10f93571/retry/task"
)

// targetJSON is where requests go.
type targetJSON struct {
	Method string `json:"method"`
	URL    string `json:"url"`
}

// requestJSON is what a task of HTTP asks for, without the secrets in it.
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
