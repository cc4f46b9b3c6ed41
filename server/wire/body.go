package wire

import (
	"encoding/base64"
	"strings"

	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/task"
)

// bodyOf reads one of the fields that give a body; field is the name of the one that is there.
func (d *Decoder) bodyOf(o *problem.Object) (body []byte, ref, field string) {
	field = bodyField(o)
	for _, name := range bodyFields() {
		if name != field && o.Has(name) {
			o.Failf(name, "%s and %s both give the body\nhint: give one of them", field, name)
		}
	}
	switch field {
	case "body":
		body = []byte(o.String("body", ""))
	case "bodyJson":
		body = o.Raw("bodyJson")
	case "bodyBase64":
		encoded := o.String("bodyBase64", "")
		var err error
		if body, err = base64.StdEncoding.DecodeString(encoded); err != nil && isText(o, "bodyBase64") {
			o.Failf("bodyBase64", "invalid base64: %v\nhint: the alphabet is that of RFC 4648, section 4, with padding", err)
		}
	case "bodyRef":
		hash, ok := strings.CutPrefix(o.String("bodyRef", ""), "sha256:")
		if (!ok || !isHash(hash)) && isText(o, "bodyRef") {
			o.Failf("bodyRef", "want sha256: and 64 digits, as PUT /blobs/{sha256} returns it")
		}
		ref = hash
	}
	return body, ref, field
}

// bodyFields are the fields that give a body.
func bodyFields() []string { return []string{"body", "bodyBase64", "bodyJson", "bodyRef"} }

// bodyField returns the first field that gives a body; empty for none.
func bodyField(o *problem.Object) string {
	for _, name := range bodyFields() {
		if o.Has(name) {
			return name
		}
	}
	return ""
}

func isHash(hash string) bool {
	return len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == ""
}

// bodySize returns how many bytes the body of a request has that is in the task itself.
func bodySize(t *task.Task) int {
	size := 0
	switch target := t.Target.(type) {
	case *request.Request:
		for i := range target.Body {
			size += len(target.Body[i].Text)
		}
	case *grpcexec.Call:
		size = max(len(target.JSON), len(target.Message))
	}
	return size
}
