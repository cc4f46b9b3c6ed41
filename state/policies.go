package state

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/runner"
)

// ErrNoPolicy says that the journal holds no policy of a name.
var ErrNoPolicy = errors.New("no such policy in the journal")

// StoredPolicy is a named policy as the journal holds it.
type StoredPolicy struct {
	runner.Policy
	UpdatedAt time.Time
	Damage    error // what of it cannot be read; then only its name is known
}

// SetPolicy stores a policy under its name, whole: nothing of an earlier one is left. It survives power loss.
func (j *Journal) SetPolicy(ctx context.Context, p runner.Policy, now time.Time) error {
	text, err := p.MarshalJSON()
	if err != nil {
		return err
	}
	const query = `INSERT INTO policies (name, policy, updated_at) VALUES (?1, ?2, ?3)
		ON CONFLICT (name) DO UPDATE SET policy = ?2, updated_at = ?3`
	err = j.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, p.Name, string(text), now.UnixMicro())
		return err
	})
	if err != nil {
		return err
	}
	return j.diagnose(j.sync())
}

// RemovePolicy returns ErrNoPolicy where there is none of that name.
func (j *Journal) RemovePolicy(ctx context.Context, name string) error {
	return j.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := guarded(tx.ExecContext(ctx, "DELETE FROM policies WHERE name = ?", name))
		if errors.Is(err, runner.ErrTaken) {
			return ErrNoPolicy
		}
		return err
	})
}

// Policy returns the policy of a name; nil where there is none.
func (j *Journal) Policy(ctx context.Context, name string) (*StoredPolicy, error) {
	found, err := j.storedPolicies(ctx, "WHERE name = ?", name)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Policies returns all policies in the order of their names.
func (j *Journal) Policies(ctx context.Context) ([]StoredPolicy, error) {
	return j.storedPolicies(ctx, "ORDER BY name")
}

func (j *Journal) storedPolicies(ctx context.Context, where string, args ...any) ([]StoredPolicy, error) {
	return collect(ctx, j, "SELECT name, policy, updated_at FROM policies "+where, args, scanPolicy)
}

// scanPolicy refuses no row: a bad one must not hide the others.
func scanPolicy(rows *sql.Rows) (StoredPolicy, error) {
	var name, text sql.NullString
	var updated integer
	if err := rows.Scan(&name, &text, &updated); err != nil {
		return StoredPolicy{}, err
	}
	p := StoredPolicy{UpdatedAt: moment(updated)}
	if policy, err := unmarshalPolicy(text.String); err != nil {
		p.Damage = err
	} else {
		p.Policy = policy
		p.Backoff = unchosen(p.Backoff)
	}
	p.Name = name.String
	return p, nil
}

// unchosen has a jitter that a curve brings along give way to that of another curve. The journal does not tell whether it was asked for.
func unchosen(spec backoff.Spec) backoff.Spec {
	own, err := backoff.Parse(spec.Curve(), "")
	if err != nil || own.Jitter() != spec.Jitter() {
		return spec
	}
	return own
}
