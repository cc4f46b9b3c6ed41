package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strings"

	"github.com/10f93571/retry/httpexec/request"
)

// payload is a hash of what a task was asked to do. It tells a repeated POST from another one under the same key, so it
// has what was sent, and not what follows from the day: not the content of a named policy, nor the time of creation.
type payload struct{ hash hash.Hash } // nil: it is not needed

func newPayload(needed bool) payload {
	if !needed {
		return payload{}
	}
	return payload{sha256.New()}
}

// add adds a field. Lengths keep one list of values from looking like another.
func (p *payload) add(name string, values ...string) {
	if p.hash == nil {
		return
	}
	var length [8]byte
	for _, text := range slices.Insert(values, 0, name) {
		binary.LittleEndian.PutUint64(length[:], uint64(len(text)))
		p.hash.Write(length[:])
		p.hash.Write([]byte(text))
	}
}

// request adds what is sent. A body counts by its content, wherever it is stored.
func (p *payload) request(r *request.Request, body []byte, ref string) {
	if p.hash == nil {
		return
	}
	if ref == "" && len(r.Body) > 0 {
		sum := sha256.Sum256(body)
		ref = hex.EncodeToString(sum[:])
	}
	headers := slices.Clone(r.Header)
	slices.SortFunc(headers, strings.Compare)
	p.add("request", r.Method, r.URL, ref)
	p.add("headers", headers...)
}

func (p *payload) sum() string {
	if p.hash == nil {
		return ""
	}
	return hex.EncodeToString(p.hash.Sum(nil))
}
