package sqlite

import (
	"encoding/json"

	"github.com/10f93571/retry/task"
)

// storedOptions are options as the journal holds them. JSON would change a hook that is no UTF-8, which it may be like an
// argument, so hooks are stored as bytes.
type storedOptions struct {
	task.Options
	OnRetry   []byte `json:"on_retry,omitempty"`
	OnSuccess []byte `json:"on_success,omitempty"`
	OnFailure []byte `json:"on_failure,omitempty"`
}

// marshalOptions returns NULL for a plain command.
func marshalOptions(o task.Options) (any, error) {
	if o == (task.Options{}) {
		return nil, nil
	}
	text, err := json.Marshal(storedOptions{o, []byte(o.OnRetry), []byte(o.OnSuccess), []byte(o.OnFailure)})
	return string(text), err
}

func unmarshalOptions(text string) (task.Options, error) {
	var s storedOptions
	err := json.Unmarshal([]byte(text), &s)
	s.Options.OnRetry, s.Options.OnSuccess, s.Options.OnFailure = string(s.OnRetry), string(s.OnSuccess), string(s.OnFailure)
	return s.Options, err
}
