package httpexec

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/task"
)

// A meter tells ten times a second, from the first transfer on, and once at the end.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []task.Transfer
		m := newMeter(func(now task.Transfer) { told = append(told, now) })
		time.Sleep(1050 * time.Millisecond)
		began := time.Now()
		m.begin(task.Transfer{Total: 20, From: 5})
		m.add(false, 7)
		m.add(true, 100) // of the request, late
		time.Sleep(200 * time.Millisecond)
		m.add(false, 8)
		m.end()
		time.Sleep(time.Second)
		half := task.Transfer{Bytes: 12, Total: 20, From: 5, Began: began}
		whole := task.Transfer{Bytes: 20, Total: 20, From: 5, Began: began, Over: true}
		if want := []task.Transfer{half, half, whole}; len(told) != 3 || told[0] != want[0] || told[1] != want[1] || told[2] != want[2] {
			t.Errorf("%+v\nwant %+v", told, want)
		}
	})
}

// Of a download that goes on, the bytes that were there count.
func TestProgressOfADownload(t *testing.T) {
	var last task.Transfer
	s := serve(t, closes(begun(tagged)), closes(rest("bytes 5-11/12", tagged, ", world")))
	c := asking(t, s.url("http"), func(c *client) { c.Progress = func(now task.Transfer) { last = now } })
	for _, want := range []task.Transfer{{Bytes: 5, Total: 12, Over: true}, {Bytes: 12, Total: 12, From: 5, Over: true}} {
		c.attempt()
		ok(t, c.comes(task.Pending))
		last.Began = time.Time{}
		if last != want {
			t.Errorf("%+v, want %+v", last, want)
		}
	}
}

// The body of a request is told of while the server still reads it.
func TestProgressOfAnUpload(t *testing.T) {
	const size = 32 << 20 // more than fits between the two
	sending := make(chan task.Transfer)
	s := serve(t, func(c *wire) {
		if now := <-sending; !now.Sending || now.Total != size || now.Bytes <= 0 || now.Bytes >= size {
			t.Errorf("%+v", now)
		}
		go func() {
			for range sending {
			}
		}()
		c.request()
		c.send(okReply)
		c.stall()
	})
	c := asking(t, s.url("http"), func(c *client) {
		c.Request.Method = "PUT"
		c.carry(data(strings.Repeat("x", size)))
		c.Progress = func(now task.Transfer) { sending <- now }
	})
	if o := c.attempt(); o.Exit != 0 {
		t.Errorf("%+v", o)
	}
	close(sending)
}
