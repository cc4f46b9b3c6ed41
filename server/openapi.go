package server

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/10f93571/retry/server/wire"
)

// openAPI describes every call. A test holds each exchange of the tests against it.
//
//go:embed openapi.json
var openAPI string

// openapi is GET /openapi.json. It needs no token, so it is encoded once.
func (s *Server) openapi(w http.ResponseWriter, r *http.Request) error {
	described, err := s.described()
	if err == nil {
		described.reply(w, r, http.StatusOK)
	}
	return err
}

// describe encodes the description. The maximum of timeouts is that of this server.
func (s *Server) describe() (tagged, error) {
	maximum := func(l wire.Limits) string {
		return `"maximum": ` + strconv.FormatInt(l.Timeout.Milliseconds(), 10)
	}
	text := strings.ReplaceAll(openAPI, maximum(wire.DefaultLimits()), maximum(s.Limits.Limits))
	return newTagged(json.RawMessage(text))
}
