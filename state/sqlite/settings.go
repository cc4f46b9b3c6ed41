package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/state/sqlite/conn"
	"github.com/10f93571/retry/task"
)

// GetPolicy implements state.Queue.
func (q *Queue) GetPolicy(ctx context.Context, name string) (*state.StoredPolicy, error) {
	found, err := selected(ctx, q, selectPolicies+"WHERE name = ?", []any{name}, scanPolicy)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// ListPolicies implements state.Queue.
func (q *Queue) ListPolicies(ctx context.Context) ([]state.StoredPolicy, error) {
	return selected(ctx, q, selectPolicies+"ORDER BY name", nil, scanPolicy)
}

// PutPolicy implements state.Queue.
func (q *Queue) PutPolicy(ctx context.Context, p task.Policy, expected string,
	now time.Time) (stored state.StoredPolicy, err error) {
	text, err := p.MarshalJSON()
	if err != nil {
		return stored, err
	}
	err = q.submit(ctx, true, func(c *conn.Conn) ([]state.Change, error) {
		if err := checkRevision(c, p.Name, expected); err != nil {
			return nil, err
		}
		const query = `INSERT INTO policies (name, policy, updated_at) VALUES (?1, ?2, ?3)
			ON CONFLICT (name) DO UPDATE SET policy = ?2, updated_at = ?3`
		if _, err := c.Exec(query, p.Name, string(text), now.UnixMicro()); err != nil {
			return nil, err
		}
		return nil, c.Each(ctx, selectPolicies+"WHERE name = ?", []any{p.Name}, func(scan conn.Scanner) (_ bool, err error) {
			stored, err = scanPolicy(scan)
			return false, err
		})
	})
	return stored, err
}

// checkRevision compares what is stored under a policy's name with what a writer expects there.
func checkRevision(c *conn.Conn, name, expected string) error {
	var stored *state.StoredPolicy
	query := selectPolicies + "WHERE name = ?"
	err := c.Each(context.Background(), query, []any{name}, func(scan conn.Scanner) (bool, error) {
		p, err := scanPolicy(scan)
		stored = &p
		return false, err
	})
	switch {
	case err != nil:
		return err
	case stored == nil && expected != "" && expected != state.NewRevision:
		return state.ErrRevision
	case stored != nil && expected != "" && stored.Revision() != expected:
		return state.ErrRevision
	}
	return nil
}

// DeletePolicy implements state.Queue.
func (q *Queue) DeletePolicy(ctx context.Context, name, expected string) error {
	return q.submit(ctx, true, func(c *conn.Conn) ([]state.Change, error) {
		if err := checkRevision(c, name, expected); err != nil {
			return nil, err
		}
		removed, err := c.Exec("DELETE FROM policies WHERE name = ?", name)
		if err == nil && removed == 0 {
			err = state.ErrNoPolicy
		}
		return nil, err
	})
}

// PutTarget implements state.Queue.
func (q *Queue) PutTarget(ctx context.Context, t state.TargetSettings) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return q.submit(ctx, true, func(c *conn.Conn) ([]state.Change, error) {
		const query = "INSERT INTO targets (host, settings) VALUES (?1, ?2) ON CONFLICT (host) DO UPDATE SET settings = ?2"
		_, err := c.Exec(query, t.Host, string(text))
		return []state.Change{{Target: t.Host, At: time.Now()}}, err
	})
}

const selectTargets = "SELECT settings FROM targets ORDER BY host"

// Targets implements state.Queue.
func (q *Queue) Targets(ctx context.Context) ([]state.TargetSettings, error) {
	return selected(ctx, q, selectTargets, nil, scanJSON[state.TargetSettings])
}

// Targets implements state.Store.
func (j *Journal) Targets(ctx context.Context) ([]state.TargetSettings, error) {
	return collect(ctx, j, selectTargets, nil, scanJSON[state.TargetSettings])
}

func scanJSON[T any](scan conn.Scanner) (value T, err error) {
	var text []byte
	if err = scan(&text); err == nil {
		err = json.Unmarshal(text, &value)
	}
	return value, err
}

// SetPolicy stores a policy in place of an earlier one with its name. It survives a power loss.
func (j *Journal) SetPolicy(ctx context.Context, p task.Policy, now time.Time) error {
	text, err := p.MarshalJSON()
	if err != nil {
		return err
	}
	const query = `INSERT INTO policies (name, policy, updated_at) VALUES (?1, ?2, ?3)
		ON CONFLICT (name) DO UPDATE SET policy = ?2, updated_at = ?3`
	err = j.write(ctx, func(c *conn.Conn) error {
		_, err := c.Exec(query, p.Name, string(text), now.UnixMicro())
		return err
	})
	if err != nil {
		return err
	}
	return j.diagnose(j.sync())
}

// RemovePolicy returns ErrNoPolicy if there is none with the name.
func (j *Journal) RemovePolicy(ctx context.Context, name string) error {
	return j.write(ctx, func(c *conn.Conn) error {
		removed, err := c.Exec("DELETE FROM policies WHERE name = ?", name)
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
func scanPolicy(scan conn.Scanner) (p state.StoredPolicy, err error) {
	var name, policy string
	err = scan(&name, &policy, &p.UpdatedAt)
	if p.Policy, p.Damage = unmarshalPolicy(policy); p.Damage == nil {
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
