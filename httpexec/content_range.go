package httpexec

import (
	"strconv"
	"strings"
)

// contentRange is the header Content-Range: RFC 9110, section 14.4.
type contentRange struct {
	first, last int64 // both included; 0 and -1 where the range cannot be satisfied
	total       int64 // -1 = unknown
}

// parseContentRange reads "bytes 0-9/20", "bytes 0-9/*" and "bytes */20".
func parseContentRange(text string) (contentRange, bool) {
	unit, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	part, size, ok := strings.Cut(strings.TrimSpace(rest), "/")
	if !ok || !strings.EqualFold(unit, "bytes") {
		return contentRange{}, false
	}
	r := contentRange{first: 0, last: -1, total: -1}
	if size != "*" {
		if r.total, ok = digits(size); !ok {
			return contentRange{}, false
		}
	}
	if part == "*" {
		return r, r.total >= 0
	}
	first, last, _ := strings.Cut(part, "-")
	var ok2 bool
	r.first, ok = digits(first)
	r.last, ok2 = digits(last)
	return r, ok && ok2 && r.first <= r.last && (r.total < 0 || r.last < r.total)
}

// digits reads digits and nothing else.
func digits(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil
}
