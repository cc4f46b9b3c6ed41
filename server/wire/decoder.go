package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/problem"
	"github.com/10f93571/retry/task"
)

// Limits bound what one task may bring.
type Limits struct {
	Headers     int           // of a request
	HeaderBytes int           // of all of them together
	Key         int           // bytes of an idempotency key
	Attempts    int           // of a policy
	Inline      int           // bytes of a body that is stored with its task; what is longer becomes a blob
	Timeout     time.Duration // of an attempt, which has a slot of its worker all the time
}

// DefaultLimits are those of a Decoder that sets none.
func DefaultLimits() Limits {
	return Limits{
		Headers: 100, HeaderBytes: 32 << 10, Key: 255, Attempts: MaxAttempts, Inline: 64 << 10, Timeout: 15 * time.Minute,
	}
}

// Decoder makes tasks of what the API was sent. Its zero value knows the built-in policies, lets requests go anywhere,
// and refuses commands.
type Decoder struct {
	Limits Limits
	// Policy finds a policy by its name; its error is told to the client, but for ErrUnread.
	Policy func(name string) (*task.Policy, error)
	// CheckTarget refuses a URL that requests must not go to; the error names the rule.
	CheckTarget func(*url.URL) error
	// EnvAllow are the variables of the environment that a request may name as {env:NAME}.
	EnvAllow []string
	// Lookup finds the value of a variable.
	Lookup func(name string) (value string, ok bool)
	// NoSecrets refuses requests that are to be signed: there is no secret.
	NoSecrets bool
	// Directory is where a command runs that names none.
	Directory string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// ErrUnread says that the policies cannot be read now.
var ErrUnread = errors.New("read the policies")

// Header is what the headers of an HTTP request say about the task in its body.
type Header struct {
	Key         string // Idempotency-Key
	TraceParent string
	Exec        bool // the client may run commands
}

// Timeouts of a request that names none, and neither does its policy.
const (
	DefaultTimeout        = 30 * time.Second
	DefaultConnectTimeout = 5 * time.Second
)

// The longest parts of a task that no flag bounds.
const (
	maxURL       = 8 << 10
	maxPartition = 200
	maxTags      = 20
	maxTag       = 100
	maxCommand   = 128 << 10
	maxRedirects = 10
	maxDelay     = 10 * 365 * 24 * time.Hour
)

// NoTimeout is Limits.Timeout where an attempt may take as long as a policy can say.
const NoTimeout = maxLimit

// New reads a task. The object remembers what is wrong with it: the task is worth something only after its Finish. A
// body longer than Limits.Inline is still in the task.
func (d *Decoder) New(o *problem.Object, h Header) *task.Task {
	return d.read(o, h, false)
}

// Exhausted makes the task that follows the end of another one, as its onExhausted says; nil for none.
func (d *Decoder) Exhausted(t *task.Task) (*task.Task, error) {
	if t.Options.Exhausted == "" {
		return nil, nil
	}
	o, err := problem.Parse([]byte(t.Options.Exhausted))
	if err != nil {
		return nil, fmt.Errorf("read onExhausted of task %s: %w", t.ID, err)
	}
	lenient := *d
	lenient.CheckTarget = nil          // it is judged when it is dialled
	lenient.Limits.Timeout = NoTimeout // it was judged when it came, maybe by a server that allows more
	lenient.Policy = func(name string) (*task.Policy, error) {
		p, err := d.named(name)
		if err != nil { // it is gone since then, or cannot be read, and to escalate matters more
			p, err = d.named(task.DefaultPolicyName)
		}
		if err != nil {
			standard := task.DefaultPolicy()
			p = &standard
		}
		return p, nil
	}
	if text := t.Options.ExhaustedPolicy; text != "" {
		var kept task.Policy
		if err := json.Unmarshal([]byte(text), &kept); err != nil {
			return nil, fmt.Errorf("read the policy of onExhausted of task %s: %w", t.ID, err)
		}
		lenient.Policy = func(string) (*task.Policy, error) { return &kept, nil }
	}
	next := lenient.read(o, Header{Exec: true}, true)
	if err := o.Finish(); err != nil {
		return nil, fmt.Errorf("read onExhausted of task %s: %w", t.ID, err)
	}
	next.IdempotencyKey, next.Parent = t.ID+exhaustedKey, t.ID
	next.Partition = cmp.Or(next.Partition, t.Partition)
	next.Payload = "exhausted"
	return next, nil
}

// read reads a task; follows is set for one that is sent when another one is dead.
func (d *Decoder) read(o *problem.Object, h Header, follows bool) *task.Task {
	now := d.now()
	t := &task.Task{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: now, Status: task.Pending, Queue: task.QueueWorker,
		Partition: readText(o, "partition", maxPartition), Tags: readTags(o),
	}
	t.Options.Capture = task.CaptureBoth
	sum := newPayload(h.Key != "" || o.Has("idempotencyKey"))
	policy := d.policy(o, t, &sum)
	if o.Has("command") {
		d.command(o, t, h, &sum)
	} else {
		d.target(o, t, h, &sum)
	}
	d.timeout(o, t)
	if policy != nil {
		checkConditions(policy, t)
	}
	delay := d.due(o, t, now)
	t.History.Began = now
	if follows {
		if o.Has("idempotencyKey") {
			o.Failf("idempotencyKey", "the task has the key of the one that it follows, and :exhausted")
		}
	} else {
		d.key(o, t, h)
		d.onExhausted(o, t, h)
	}
	if t.IdempotencyKey == "" {
		t.IdempotencyKey = uuid.NewString()
		return t
	}
	sum.add("task", string(t.Kind), delay, t.Policy.Timeout.String(), t.Options.Exhausted)
	sum.add("tags", t.Tags...)
	t.Payload = sum.sum()
	return t
}

func (d *Decoder) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

// limits returns the limits, with the defaults for those that are not set.
func (d *Decoder) limits() Limits {
	l, usual := d.Limits, DefaultLimits()
	return Limits{
		Headers: cmp.Or(l.Headers, usual.Headers), HeaderBytes: cmp.Or(l.HeaderBytes, usual.HeaderBytes),
		Key: cmp.Or(l.Key, usual.Key), Attempts: cmp.Or(l.Attempts, usual.Attempts), Inline: cmp.Or(l.Inline, usual.Inline),
		Timeout: cmp.Or(l.Timeout, usual.Timeout),
	}
}

// timeout reads that of an attempt: the task says it, or its policy. A command without one may take as long as it
// likes.
func (d *Decoder) timeout(o *problem.Object, t *task.Task) {
	most := d.limits().Timeout
	switch {
	case o.Has("timeoutMs"):
		t.Policy.Timeout = readTimeout(o, most)
	case t.Kind == task.KindCommand:
	case t.Policy.Timeout > most && t.Policy.Name != "": // else the inline policy says so
		o.Failf("policyId", "the policy's timeout is %s, more than %s\nhint: give timeoutMs, or %s",
			text.FormatDuration(t.Policy.Timeout), text.FormatDuration(most), allowMore)
	default:
		t.Policy.Timeout = cmp.Or(t.Policy.Timeout, DefaultTimeout)
	}
}

// policy reads the policy of a task, by its name or inline. It returns the object of an inline one.
func (d *Decoder) policy(o *problem.Object, t *task.Task, sum *payload) *problem.Object {
	inline := o.Object("policy")
	name := o.String("policyId", "")
	switch {
	case inline != nil && o.Has("policyId"):
		o.Failf("policy", "policy and policyId say the same thing\nhint: give one of them")
	case inline != nil:
		t.Policy = ReadPolicy(inline, d.limits())
		if inline.Has("policyId") {
			inline.Failf("policyId", "a policy within a task has no name\nhint: leave it out")
		}
		t.Policy.Name = ""
		spelled, _ := json.Marshal(t.Policy)
		sum.add("policy", string(spelled))
		return inline
	case !o.Has("policyId"):
		name = task.DefaultPolicyName
	}
	sum.add("policyId", name)
	found, err := d.named(name)
	switch {
	case errors.Is(err, ErrUnread):
		o.Abandon(err)
	case err != nil:
		o.Fail("policyId", err)
	default:
		t.Policy = *found
	}
	return nil
}

func (d *Decoder) named(name string) (*task.Policy, error) {
	if d.Policy != nil {
		return d.Policy(name)
	}
	p, err := task.BuiltinPolicy(name)
	return &p, err
}

// checkConditions refuses conditions of an inline policy that can never match the task's kind.
func checkConditions(o *problem.Object, t *task.Task) {
	for _, list := range []struct {
		name       string
		conditions []task.Condition
	}{{"retryOn", t.Policy.RetryOn}, {"stopOn", t.Policy.StopOn}, {"successOn", t.Policy.SuccessOn}} {
		for _, c := range list.conditions {
			if o.Has(list.name) {
				if err := task.CheckCondition(t.Kind, c.String()); err != nil {
					o.Fail(list.name, err)
				}
			}
		}
	}
}

// due reads when the first attempt is due. It returns how that was said, for the payload.
func (d *Decoder) due(o *problem.Object, t *task.Task, now time.Time) string {
	t.NextAttemptAt = now
	delay := o.Int("delayMs", 0, 0, maxDelay.Milliseconds())
	at := o.Time("notBefore", now)
	switch {
	case o.Has("delayMs") && o.Has("notBefore"):
		o.Failf("notBefore", "delayMs and notBefore say the same thing\nhint: give one of them")
	case at.Sub(now) > maxDelay:
		o.Failf("notBefore", "the time is more than ten years away")
	case at.After(now):
		t.NextAttemptAt = at
	case delay > 0:
		t.NextAttemptAt = now.Add(time.Duration(delay) * time.Millisecond)
	}
	if budget := t.Policy.Budget; budget > 0 && t.NextAttemptAt.Sub(now) >= budget {
		name := "delayMs"
		if o.Has("notBefore") {
			name = "notBefore"
		}
		o.Failf(name, "the first attempt would begin after the policy's budget of %s, which counts from now on",
			text.FormatDuration(budget))
	}
	return string(o.Raw("delayMs")) + "/" + string(o.Raw("notBefore"))
}

// key reads the idempotency key of the body and of the header.
func (d *Decoder) key(o *problem.Object, t *task.Task, h Header) {
	t.IdempotencyKey = h.Key
	if h.Key != "" && o.Has("idempotencyKey") && o.String("idempotencyKey", "") != h.Key {
		o.Failf("idempotencyKey", "it is not that of the header Idempotency-Key\nhint: give one of them")
	}
	if o.Has("idempotencyKey") {
		t.IdempotencyKey = o.String("idempotencyKey", "")
		if t.IdempotencyKey == "" && isText(o, "idempotencyKey") {
			o.Failf("idempotencyKey", "it is empty\nhint: leave it out, and a key is made up")
		}
	}
	err := CheckKey(t.IdempotencyKey, d.limits().Key)
	if id, ends := strings.CutSuffix(t.IdempotencyKey, exhaustedKey); ends && uuid.Validate(id) == nil {
		err = errors.New("a key that ends so is that of the request which follows a dead task\nhint: give another one")
	}
	if err != nil {
		o.Fail("idempotencyKey", err)
	}
}

// exhaustedKey, after the id of a task, is the key of what follows its end. Nobody else can have it, or that would not
// be sent.
const exhaustedKey = ":exhausted"

// CheckKey returns an error for an idempotency key that cannot be sent as a header.
func CheckKey(key string, most int) error {
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' {
			return fmt.Errorf("the key holds a character that a header cannot\nhint: use letters and digits")
		}
	}
	switch {
	case len(key) > most:
		return fmt.Errorf("the key has %d bytes, more than %d", len(key), most)
	case strings.TrimSpace(key) != key:
		return fmt.Errorf("the key begins or ends with a space")
	}
	return nil
}

// onExhausted reads the task that follows when this one is dead, and keeps it as it was sent. A policy that it names is
// kept beside it: who may change that later may not change what this client's task does.
func (d *Decoder) onExhausted(o *problem.Object, t *task.Task, h Header) {
	next := o.Object("onExhausted")
	if next == nil {
		return
	}
	follows := d.read(next, h, true)
	if next.Has("bodyRef") {
		next.Failf("bodyRef", "nothing keeps a blob for a task that does not exist yet\nhint: give the body itself")
	} else if n := bodySize(follows); n > d.limits().Inline {
		next.Failf(bodyField(next), "the body has %d bytes, more than %d", n, d.limits().Inline)
	}
	t.Options.Exhausted = string(o.Raw("onExhausted"))
	if !o.Failed() && !next.Has("policy") {
		kept, _ := json.Marshal(follows.Policy) // as in policy: it always can be
		t.Options.ExhaustedPolicy = string(kept)
	}
}
