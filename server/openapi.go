package server

import (
	_ "embed"
	"encoding/json"
	"net/http"
)

// openAPI describes every call. A test holds each exchange of the tests against it.
//
//go:embed openapi.json
var openAPI string

// openapi is GET /openapi.json.
func (s *Server) openapi(w http.ResponseWriter, r *http.Request) error {
	return replyTagged(w, r, http.StatusOK, json.RawMessage(openAPI))
}
