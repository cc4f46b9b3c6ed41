package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// SetPolicy stores a policy under its name, whole: nothing of an earlier one is left. It survives power loss.
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

// RemovePolicy returns ErrNoPolicy where there is none of that name.
func (j *Journal) RemovePolicy(ctx context.Context, name string) error {
	return j.write(ctx, func(c *conn) error {
		removed, err := c.exec("DELETE FROM policies WHERE name = ?", name)
		if err == nil && removed == 0 {
			return state.ErrNoPolicy
		}
		return err
	})
}

// Policy returns the policy of a name; nil where there is none.
func (j *Journal) Policy(ctx context.Context, name string) (*state.StoredPolicy, error) {
	var row policyRow
	err := j.row(ctx, selectPolicies+"WHERE name = ?", []any{name}, &row.name, &row.text, &row.updated)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return row.policy(), nil
}

const selectPolicies = "SELECT name, policy, updated_at FROM policies "

// Policies returns all policies in the order of their names.
func (j *Journal) Policies(ctx context.Context) ([]state.StoredPolicy, error) {
	return j.storedPolicies(ctx, "ORDER BY name")
}

func (j *Journal) storedPolicies(ctx context.Context, where string, args ...any) ([]state.StoredPolicy, error) {
	return collect(ctx, j, selectPolicies+where, args, scanPolicy)
}

func scanPolicy(scan scanner) (state.StoredPolicy, error) {
	var row policyRow
	if err := scan(&row.name, &row.text, &row.updated); err != nil {
		return state.StoredPolicy{}, err
	}
	return *row.policy(), nil
}

// policyRow is a policy as the journal holds it. No row is refused: a bad one must not hide the others.
type policyRow struct {
	name, text sql.NullString
	updated    integer
}

func (r *policyRow) policy() *state.StoredPolicy {
	p := &state.StoredPolicy{UpdatedAt: moment(r.updated)}
	if policy, err := unmarshalPolicy(r.text.String); err != nil {
		p.Damage = err
	} else {
		p.Policy = policy
		p.Backoff = unchosen(p.Backoff)
	}
	p.Name = r.name.String
	return p
}

// unchosen has a jitter that a curve brings along give way to that of another curve. The journal does not tell whether it was asked for.
func unchosen(spec backoff.Spec) backoff.Spec {
	own, err := backoff.Parse(spec.Curve(), "")
	if err != nil || own.Jitter() != spec.Jitter() {
		return spec
	}
	return own
}
