package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/internal/text"
	"github.com/10f93571/retry/server/wire"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// source is where a policy is from. Each hides those of its name before it.
type source string

const (
	sourceBuiltIn source = "built in"
	sourceStore   source = "store"
	sourceConfig  source = "config file"
)

// knownPolicy is a policy and where it is from.
type knownPolicy struct {
	state.StoredPolicy
	source source
}

// policy returns the policy of a name; nil for none.
func (s *Server) policy(ctx context.Context, name string) (*knownPolicy, error) {
	for _, p := range s.configured() {
		if p.Name == name {
			return &knownPolicy{state.StoredPolicy{Policy: p}, sourceConfig}, nil
		}
	}
	stored, err := s.Queue.GetPolicy(ctx, name)
	if err != nil || stored != nil {
		if err != nil {
			return nil, err
		}
		return &knownPolicy{*stored, sourceStore}, nil
	}
	if p, err := task.BuiltinPolicy(name); err == nil {
		return &knownPolicy{state.StoredPolicy{Policy: p}, sourceBuiltIn}, nil
	}
	return nil, nil
}

func (s *Server) configured() []task.Policy {
	if s.Policies == nil {
		return nil
	}
	return s.Policies()
}

// allPolicies returns the policies that hold, by name, the default first.
func (s *Server) allPolicies(ctx context.Context) ([]knownPolicy, error) {
	byName := map[string]knownPolicy{}
	for _, name := range builtinNames() {
		if p, err := task.BuiltinPolicy(name); err == nil {
			byName[name] = knownPolicy{state.StoredPolicy{Policy: p}, sourceBuiltIn}
		}
	}
	stored, err := s.reads.ListPolicies(ctx)
	for _, p := range stored {
		byName[p.Name] = knownPolicy{p, sourceStore}
	}
	for _, p := range s.configured() {
		byName[p.Name] = knownPolicy{state.StoredPolicy{Policy: p}, sourceConfig}
	}
	var all []knownPolicy
	for _, p := range byName {
		all = append(all, p)
	}
	key := func(name string) string { return strings.TrimPrefix(name, task.DefaultPolicyName) } // it sorts first
	slices.SortFunc(all, func(a, b knownPolicy) int {
		return cmp.Or(strings.Compare(key(a.Name), key(b.Name)), strings.Compare(a.Name, b.Name))
	})
	return all, err
}

func builtinNames() []string {
	names := []string{task.DefaultPolicyName}
	for _, p := range backoff.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// policyCache remembers policies for a moment: each POST asks for one.
type policyCache struct {
	server *Server
	mutex  sync.Mutex
	known  map[string]cachedPolicy
	names  []string // of all policies, for hints: a batch may ask for 1,000 that do not exist
	until  time.Time
}

type cachedPolicy struct {
	policy *task.Policy
	until  time.Time
}

// fresh is how long a policy that another process has changed may still be used.
const fresh = time.Second

// find returns the policy of a name. The error is for a client.
func (c *policyCache) find(name string) (*task.Policy, error) {
	now := c.server.Now()
	c.mutex.Lock()
	found, ok := c.known[name]
	c.mutex.Unlock()
	if ok && now.Before(found.until) {
		return found.policy, nil
	}
	ctx := context.Background()
	p, err := c.server.policy(ctx, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", wire.ErrUnread, err)
	case p == nil:
		return nil, c.server.unknownPolicy(ctx, name)
	case p.Damage != nil:
		return nil, errors.New("the policy is damaged\nhint: PUT it anew")
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	const most = 1000
	if c.known == nil || len(c.known) >= most {
		c.known = map[string]cachedPolicy{}
	}
	c.known[name] = cachedPolicy{&p.Policy, now.Add(fresh)}
	return &p.Policy, nil
}

func (c *policyCache) forget() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.known, c.names = nil, nil
}

// allNames returns the names of all policies.
func (c *policyCache) allNames(ctx context.Context) []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if now := c.server.Now(); c.names == nil || !now.Before(c.until) {
		c.names, c.until = nil, now.Add(fresh)
		all, _ := c.server.allPolicies(ctx) // for a hint alone
		for _, p := range all {
			c.names = append(c.names, p.Name)
		}
	}
	return c.names
}

// unknownPolicy names the policies that there are.
func (s *Server) unknownPolicy(ctx context.Context, name string) error {
	names := s.named.allNames(ctx)
	const most = 20
	hint := "the policies are " + strings.Join(names[:min(len(names), most)], ", ")
	if near := text.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return fmt.Errorf("unknown policy %q\nhint: %s", text.Shorten(name, 100), hint)
}
