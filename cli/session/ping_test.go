package session

import (
	"testing"

	"github.com/10f93571/retry/task"
)

func TestPingOf(t *testing.T) {
	for _, tt := range []struct {
		url, start, success, failure string // empty: no ping
	}{
		{url: "https://h/uuid", start: "POST https://h/uuid/start", success: "POST https://h/uuid",
			failure: "POST https://h/uuid/3"},
		{url: "https://h/slug/?create=1", start: "POST https://h/slug/start?create=1", success: "POST https://h/slug?create=1",
			failure: "POST https://h/slug/3?create=1"},
		{url: "https://h/{env:KEY}", start: "POST https://h/{env:KEY}/start", success: "POST https://h/{env:KEY}",
			failure: "POST https://h/{env:KEY}/3"},
		{url: "https://h/p?state=complete&env=prod", start: "GET https://h/p?state=run&env=prod",
			success: "GET https://h/p?state=complete&env=prod", failure: "GET https://h/p?state=fail&env=prod&message=gave+up"},
		{url: "https://h/push?status=up&msg=OK&ping=", success: "GET https://h/push?status=up&msg=OK&ping=",
			failure: "GET https://h/push?status=down&ping=&msg=gave+up"},
		{url: "https://h/cron?status=ok", start: "GET https://h/cron?status=in_progress",
			success: "GET https://h/cron?status=ok", failure: "GET https://h/cron?status=error"},
	} {
		for _, end := range []struct {
			status task.Status
			exit   int
			want   string
		}{{task.Pending, 0, tt.start}, {task.Succeeded, 0, tt.success}, {task.Exhausted, 3, tt.failure}} {
			got := ""
			if r := pingOf(tt.url, end.status, end.exit, "gave up\nmore"); r != nil {
				got = r.Title()
			}
			if got != end.want {
				t.Errorf("%s, %s: got %q, want %q", tt.url, end.status, got, end.want)
			}
		}
	}
	if got, want := pingOf("https://h/u", task.Failed, 0xC0000005, "").URL, "https://h/u/fail"; got != want {
		t.Errorf("an exit status of Windows: got %s, want %s", got, want)
	}
}
