package sqlite

import (
	"context"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// SetPolicy stores a policy in place of an earlier one with its name. It survives a power loss.
func (j *Journal) SetPolicy(ctx context.Context, p task.Policy, now time.Time) error {
	text, err := p.MarshalJSON()
	if err != nil {
		return err
	}
	const query = `INSERT INTO policies (name, policy, updated_at) VALUES (?1, ?2, ?3)
		ON CONFLICT (name) DO UPDATE SET policy = ?2, updated_at = ?3`
	err = j.write(ctx, func(c *conn) error {
		_, err := c.exec(query, p.Name, string(text), now.UnixMicro())
		return err
	})
	if err != nil {
		return err
	}
	return j.diagnose(j.sync())
}

// RemovePolicy returns ErrNoPolicy if there is none with the name.
func (j *Journal) RemovePolicy(ctx context.Context, name string) error {
	return j.write(ctx, func(c *conn) error {
		removed, err := c.exec("DELETE FROM policies WHERE name = ?", name)
		if err == nil && removed == 0 {
			return state.ErrNoPolicy
		}
		return err
	})
}

// Policy returns the policy with a name; nil if there is none.
func (j *Journal) Policy(ctx context.Context, name string) (*state.StoredPolicy, error) {
	found, err := collect(ctx, j, selectPolicies+"WHERE name = ?", []any{name}, scanPolicy)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

const selectPolicies = "SELECT name, policy, updated_at FROM policies "

// Policies returns all policies in the order of their names.
func (j *Journal) Policies(ctx context.Context) ([]state.StoredPolicy, error) {
	return collect(ctx, j, selectPolicies+"ORDER BY name", nil, scanPolicy)
}

// scanPolicy accepts every row: a bad one must not hide the others.
func scanPolicy(scan scanner) (p state.StoredPolicy, err error) {
	var name, text string
	err = scan(&name, &text, &p.UpdatedAt)
	if p.Policy, p.Damage = unmarshalPolicy(text); p.Damage == nil {
		p.Backoff = unchosen(p.Backoff)
	}
	p.Name = name
	return p, err
}

// unchosen marks a jitter that is the curve's default as not chosen, so that another curve brings its own. The journal
// does not tell whether a user chose it.
func unchosen(spec backoff.Spec) backoff.Spec {
	own, err := backoff.Parse(spec.Curve(), "")
	if err != nil || own.Jitter() != spec.Jitter() {
		return spec
	}
	return own
}
