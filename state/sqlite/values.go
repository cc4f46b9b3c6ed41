package sqlite

import (
	"strings"
	"time"
)

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// joinStrings ends each string with the one byte that no argument and no variable can hold.
func joinStrings(list []string) []byte {
	joined := []byte{} // not nil, which would be NULL
	for _, s := range list {
		joined = append(append(joined, s...), 0)
	}
	return joined
}

func splitStrings(joined []byte) []string {
	if len(joined) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(joined), "\x00"), "\x00")
}
