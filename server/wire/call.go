package wire

import (
	"fmt"
	"net/url"

	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/task"
)

// call reads a task that makes a call of gRPC. Its headers are the metadata.
func (d *Decoder) call(o *problem.Object, t *task.Task, h Header, sum *payload) {
	t.Kind = grpcexec.Kind
	for _, name := range []string{"method", "followRedirects", "sign", "body", "bodyRef"} {
		if o.Has(name) {
			o.Failf(name, "it is not for gRPC\nhint: give bodyJson, or bodyBase64 with the encoded message")
		}
	}
	given := d.headers(o)
	body, _, field := d.bodyOf(o)
	var message, asJSON []byte
	switch field {
	case "bodyBase64":
		message = append([]byte{}, body...)
	case "bodyJson":
		asJSON = body
	}
	to := o.String("targetUrl", "")
	c, err := grpcexec.New(to, asJSON, message, withTrace(given, h))
	if err == nil {
		err = d.checkCall(c.URL)
	}
	if err != nil {
		o.Fail("targetUrl", err)
		return
	}
	t.Target = c
	c.Guarded = true
	c.Network.ConnectTimeout = readLimit(o, "connectTimeoutMs", DefaultConnectTimeout)
	repeats := readRepeats(o, t)
	c.Idempotent, c.Keyed = repeats, repeats
	sum.add("call", to, c.JSON, string(c.Message), fmt.Sprint(c.Raw, repeats, c.Network.ConnectTimeout))
	sum.add("metadata", given...)
}

// checkCall refuses a URL that calls must not go to.
func (d *Decoder) checkCall(target string) error {
	if len(target) > maxURL {
		return fmt.Errorf("the URL has %d bytes, more than %d", len(target), maxURL)
	}
	u, err := url.Parse(target)
	if err != nil || d.CheckTarget == nil {
		return err
	}
	return d.CheckTarget(u)
}
