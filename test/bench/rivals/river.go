package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/mattn/go-sqlite3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/10f93571/retry/test/bench/load"
)

// Kind is the name of a delivery in River's table.
func (delivery) Kind() string { return "deliver" }

// inserter is a client of River on any database.
type inserter interface {
	Insert(context.Context, river.JobArgs, *river.InsertOpts) (*rivertype.JobInsertResult, error)
	InsertManyFast(context.Context, []river.InsertManyParams) (int, error)
}

// riverSystem is River on a database of its own.
type riverSystem struct {
	worker
	name   string
	client inserter
	reset  func(ctx context.Context, durable bool) (inserter, error)
	size   func(ctx context.Context) (int64, error)
	close  func() error
}

func startRiverPostgres(ctx context.Context, dir string, t tuning) (load.System, string, error) {
	server, address, version, err := startPostgres(ctx, dir)
	if err != nil {
		return nil, "", err
	}
	s := &riverSystem{name: "River, PostgreSQL",
		worker: worker{kind: "river-postgres", address: address, tuning: t, log: dir + "/worker.log", server: server}}
	s.close = server.Stop
	pool, err := openPostgres(ctx, address, 32)
	if err != nil {
		return nil, "", errors.Join(err, server.Stop())
	}
	s.close = func() error {
		pool.Close()
		return server.Stop()
	}
	driver := riverpgxv5.New(pool)
	if err := migrate(ctx, driver); err != nil {
		return nil, "", errors.Join(err, s.close())
	}
	client, err := river.NewClient(driver, &river.Config{Logger: quiet()})
	s.reset = func(ctx context.Context, _ bool) (inserter, error) {
		_, err := pool.Exec(ctx, "TRUNCATE river_job, river_leader, river_queue")
		if err == nil {
			_, err = pool.Exec(ctx, "CHECKPOINT")
		}
		return client, err
	}
	s.size = func(ctx context.Context) (size int64, err error) {
		return size, pool.QueryRow(ctx, "SELECT pg_total_relation_size('river_job')").Scan(&size)
	}
	said := fmt.Sprintf("River v0.51.1: %d slots, FetchCooldown 1ms, FetchPollInterval %v; PostgreSQL %s on a unix socket: %s.",
		t.RiverWorkers, t.RiverPoll, version, postgresSettings)
	return s, said, err
}

func startRiverSQLite(dir string, t tuning) (load.System, string, error) {
	file := dir + "/river.db"
	s := &riverSystem{name: "River, SQLite",
		worker: worker{kind: "river-sqlite", address: file, tuning: t, log: dir + "/worker.log"}}
	var db *sql.DB
	s.close = func() error {
		if db == nil {
			return nil
		}
		return db.Close()
	}
	s.reset = func(ctx context.Context, durable bool) (inserter, error) {
		for _, name := range []string{file, file + "-wal", file + "-shm"} {
			if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
		}
		err := s.close()
		if err != nil {
			return nil, err
		}
		if db, err = openSQLite(file, durable); err != nil {
			return nil, err
		}
		driver := riversqlite.New(db)
		if err := migrate(ctx, driver); err != nil {
			return nil, err
		}
		return river.NewClient(driver, &river.Config{Logger: quiet()})
	}
	s.size = func(context.Context) (int64, error) { return load.DirSize(dir) }
	return s, fmt.Sprintf("River on SQLite (driver v0.49.0): the same for the worker; %d slots, WAL, synchronous NORMAL (FULL for durable creates), mattn/go-sqlite3, "+
		"one connection a process.", t.RiverWorkers), nil
}

func (s *riverSystem) Name() string { return s.name }

func (s *riverSystem) Handicaps(row string) string {
	switch row {
	case "attempts":
		if s.kind == "river-sqlite" {
			return "keeps errors alone of its attempts"
		}
		return "commits its batches of outcomes with fsync; keeps errors alone of its attempts; the server is PostgreSQL"
	case "creates":
		return "no HTTP API; each insert is a commit with fsync"
	case "late", "half", "million":
		return "looks every FetchPollInterval"
	case "kill":
		return "looks for lost tasks after an hour by default"
	}
	return ""
}

func (s *riverSystem) Reset(ctx context.Context, durable bool) error {
	if err := s.Kill(); err != nil {
		return err
	}
	client, err := s.reset(ctx, durable)
	s.client = client
	return err
}

func (s *riverSystem) Fill(ctx context.Context, tasks []load.Task) error {
	for some := range slices.Chunk(tasks, 1000) {
		params := make([]river.InsertManyParams, len(some))
		for i, t := range some {
			params[i] = river.InsertManyParams{Args: delivery{t.URL, load.Body}, InsertOpts: insertOptions(t)}
		}
		if _, err := s.client.InsertManyFast(ctx, params); err != nil {
			return err
		}
	}
	return nil
}

func (s *riverSystem) Add(ctx context.Context, t load.Task) error {
	_, err := s.client.Insert(ctx, delivery{t.URL, load.Body}, insertOptions(t))
	return err
}

func insertOptions(t load.Task) *river.InsertOpts {
	return &river.InsertOpts{MaxAttempts: t.Attempts, ScheduledAt: t.Due}
}

func (s *riverSystem) StoreBytes(ctx context.Context) (int64, string, error) {
	size, err := s.size(ctx)
	return size, "on disk", err
}

func (s *riverSystem) Close() error { return errors.Join(s.Kill(), s.close()) }

func openPostgres(ctx context.Context, address string, connections int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.MaxConns = connections
	return pgxpool.NewWithConfig(ctx, config)
}

func openSQLite(file string, durable bool) (*sql.DB, error) {
	sync := "NORMAL"
	if durable {
		sync = "FULL"
	}
	db, err := sql.Open("sqlite3", "file:"+file+"?_journal_mode=WAL&_busy_timeout=30000&_txlock=immediate&_synchronous="+sync)
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func migrate[TTx any](ctx context.Context, driver riverdriver.Driver[TTx]) error {
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet()})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	return err
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// deliverer is River's worker.
type deliverer struct {
	river.WorkerDefaults[delivery]
	sender
}

func (d *deliverer) Work(ctx context.Context, job *river.Job[delivery]) error {
	return d.send(ctx, job.Args)
}

// steadyRetry makes all delays between attempts the same.
type steadyRetry struct{}

func (steadyRetry) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(load.RetryDelay) }

func workRiverPostgres(address string, t tuning) error {
	pool, err := openPostgres(context.Background(), address, 16)
	if err != nil {
		return err
	}
	return workRiver(riverpgxv5.New(pool), t)
}

func workRiverSQLite(file string, t tuning) error {
	db, err := openSQLite(file, false)
	if err != nil {
		return err
	}
	return workRiver(riversqlite.New(db), t)
}

func workRiver[TTx any](driver riverdriver.Driver[TTx], t tuning) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &deliverer{sender: newSender(t.RiverWorkers)})
	client, err := river.NewClient(driver, &river.Config{Logger: quiet(), Workers: workers, RetryPolicy: steadyRetry{},
		FetchCooldown: time.Millisecond, FetchPollInterval: t.RiverPoll,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: t.RiverWorkers}}})
	if err != nil {
		return err
	}
	if err := client.Start(context.Background()); err != nil {
		return err
	}
	<-client.Stopped()
	return errors.New("river's client stopped")
}
