package wire

import "testing"

func TestShownExhausted(t *testing.T) {
	for _, tt := range []struct{ sent, mask, want string }{
		{`{"command": ["db", "--password", "hunter2"]}`, "", `{"command":["db","--password","***"]}`},
		{`{"targetUrl": "https://a.org/x1", "body": "x1", "bodyJson": 11}`, "x?1",
			`{"targetUrl":"https://a.org/***","body":"***","bodyJson":"******"}`},
		{`{}`, "", "{}"},
		{`{"targetUrl": 3, "headers": null}`, "", `{"targetUrl":"","headers":{}}`},
		{"damaged", "", ""},
		{"", "", ""},
	} {
		if got := string(shownExhausted(tt.sent, tt.mask)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.sent, got, tt.want)
		}
	}
}
