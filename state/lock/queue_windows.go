package lock

import (
	"context"
)

// Queue does nothing: Windows offers no such queue.
func (o *Owners) Queue(context.Context) (done func()) { return func() {} }
