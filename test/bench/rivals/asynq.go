package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/10f93571/retry/test/bench/load"
)

const asynqKind = "deliver"

// asynqSystem is asynq on a redis-server of its own.
type asynqSystem struct {
	worker
	redis  *redis.Client
	client *asynq.Client
}

func startAsynq(ctx context.Context, dir string, t tuning) (load.System, string, error) {
	server, socket, version, err := startRedis(ctx, dir)
	if err != nil {
		return nil, "", err
	}
	s := &asynqSystem{redis: redis.NewClient(&redis.Options{Network: "unix", Addr: socket}),
		client: asynq.NewClient(asynq.RedisClientOpt{Network: "unix", Addr: socket, PoolSize: fillers}),
		worker: worker{kind: "asynq", address: socket, tuning: t, log: dir + "/worker.log", server: server}}
	said := fmt.Sprintf("asynq v0.26.0: %d slots, DelayedTaskCheckInterval %v; redis-server %s on a unix socket, appendonly yes, "+
		"appendfsync everysec (always for durable creates), save \"\".", t.Concurrency, t.Forward, version)
	return s, said, nil
}

// fillers are the clients of Fill: asynq has no call for many tasks.
const fillers = 32

func (*asynqSystem) Name() string { return "asynq, Redis" }

func (*asynqSystem) Handicaps(row string) string {
	switch row {
	case "attempts":
		return "keeps no log of attempts; acknowledged tasks of the last second can be lost (everysec); " +
			"the server is redis-server"
	case "creates":
		return "no HTTP API; appendfsync always"
	case "late", "half", "million":
		return "due times are whole seconds; looks every DelayedTaskCheckInterval"
	case "kill":
		return "looks for lost tasks once a minute"
	case "memory":
		return "all tasks are in Redis' memory"
	}
	return ""
}

func (s *asynqSystem) Reset(ctx context.Context, durable bool) error {
	sync := "everysec"
	if durable {
		sync = "always"
	}
	return errors.Join(s.Kill(), s.redis.FlushAll(ctx).Err(), s.redis.ConfigSet(ctx, "appendfsync", sync).Err())
}

func (s *asynqSystem) Fill(ctx context.Context, tasks []load.Task) error {
	var next atomic.Int64
	var clients sync.WaitGroup
	failures := make([]error, fillers)
	for i := range fillers {
		clients.Go(func() {
			for failures[i] == nil {
				n := int(next.Add(1)) - 1
				if n >= len(tasks) {
					return
				}
				failures[i] = s.Add(ctx, tasks[n])
			}
		})
	}
	clients.Wait()
	return errors.Join(failures...)
}

func (s *asynqSystem) Add(ctx context.Context, t load.Task) error {
	payload, err := json.Marshal(delivery{t.URL, load.Body})
	if err != nil {
		return err
	}
	var options []asynq.Option
	if !t.Due.IsZero() {
		options = append(options, asynq.ProcessAt(t.Due))
	}
	if t.Attempts > 0 {
		options = append(options, asynq.MaxRetry(t.Attempts-1))
	}
	_, err = s.client.EnqueueContext(ctx, asynq.NewTask(asynqKind, payload), options...)
	return err
}

func (s *asynqSystem) StoreBytes(ctx context.Context) (int64, string, error) {
	var used int64
	info, err := s.redis.InfoMap(ctx, "memory").Result()
	if err == nil {
		_, err = fmt.Sscan(info["Memory"]["used_memory"], &used)
	}
	return used, "in memory", err
}

func (s *asynqSystem) Close() error {
	return errors.Join(s.Kill(), s.client.Close(), s.redis.Close(), s.server.Stop())
}

func workAsynq(socket string, t tuning) error {
	sender := newSender(t.Concurrency)
	server := asynq.NewServer(asynq.RedisClientOpt{Network: "unix", Addr: socket, PoolSize: t.Concurrency + 10}, asynq.Config{
		Concurrency: t.Concurrency, DelayedTaskCheckInterval: t.Forward, LogLevel: asynq.ErrorLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return load.RetryDelay },
	})
	return server.Run(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		var d delivery
		if err := json.Unmarshal(task.Payload(), &d); err != nil {
			return err
		}
		return sender.send(ctx, d)
	}))
}
