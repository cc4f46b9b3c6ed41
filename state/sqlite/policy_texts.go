package sqlite

import (
	"encoding/json"
	"errors"
	"sync"

	"github.com/10f93571/retry/task"
)

// policyTexts are the policies that were read lately, by the text in the journal. Thousands of tasks have few different ones, and to
// compile their expressions takes longer than to read the rest of a task.
type policyTexts struct {
	mutex sync.Mutex
	known map[string]task.Policy
}

// mostTexts bounds what is remembered. Beyond it all is forgotten.
const mostTexts = 64

// read returns the policy of a text. It is shared: nobody changes its lists.
func (c *policyTexts) read(text string) (task.Policy, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if p, ok := c.known[text]; ok {
		return p, nil
	}
	p, err := unmarshalPolicy(text)
	if err != nil {
		return p, err
	}
	if c.known == nil || len(c.known) >= mostTexts {
		c.known = map[string]task.Policy{}
	}
	c.known[text] = p
	return p, nil
}

func unmarshalPolicy(text string) (p task.Policy, err error) {
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, unreadable("policy", err)
	}
	if p.Attempts < 0 || p.Consecutive < 0 || min(p.Timeout, p.KillAfter, p.Budget, p.ResetAfter) < 0 {
		return p, errors.New("policy: a limit is negative")
	}
	return p, nil
}
