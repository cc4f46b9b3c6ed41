package sqlite

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Whether somebody waits for it or only asks now and then, it ends at the same time and in the same way.
func TestALimitEndsInTime(t *testing.T) {
	why := errors.New("why")
	for _, test := range []struct {
		name         string
		outer, inner time.Duration
		stopped      time.Duration // 0: never
		at           time.Duration
		err, cause   error
	}{
		{"its own", time.Minute, time.Second, 0, time.Second, context.DeadlineExceeded, context.DeadlineExceeded},
		{"the outer one's", time.Second, time.Minute, 0, time.Second, context.DeadlineExceeded, context.DeadlineExceeded},
		{"stopped", time.Minute, time.Second, time.Millisecond, time.Millisecond, context.Canceled, why},
	} {
		for _, waits := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				stoppable, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				if test.stopped > 0 {
					time.AfterFunc(test.stopped, func() { stop(why) })
				}
				outer, cancelOuter := Limit(stoppable, test.outer)
				defer cancelOuter()
				inner, cancel := Limit(outer, test.inner)
				defer cancel()
				end, _ := inner.Deadline()
				if left := time.Until(end); left != min(test.outer, test.inner) || inner.Err() != nil {
					t.Errorf("%s: %v are left, %v", test.name, left, inner.Err())
				}
				begun := time.Now()
				if waits {
					<-inner.Done()
				} else {
					time.Sleep(test.at)
					synctest.Wait()
				}
				if at := time.Since(begun); at != test.at || !errors.Is(inner.Err(), test.err) || !errors.Is(context.Cause(inner), test.cause) {
					t.Errorf("%s, waits %v: %v after %v, for %v", test.name, waits, inner.Err(), at, context.Cause(inner))
				}
			})
		}
	}
}

func TestACancelledLimitLetsGo(t *testing.T) {
	ctx, cancel := Limit(t.Context(), time.Hour)
	done := ctx.Done()
	cancel()
	<-done
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error(ctx.Err())
	}
}
