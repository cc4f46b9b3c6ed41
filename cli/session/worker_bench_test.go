package session

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/10f93571/retry/cli/flags"
	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/httpexec/request"
	"github.com/10f93571/retry/state/sqlite"
	"github.com/10f93571/retry/state/storetest"
	"github.com/10f93571/retry/task"
	"github.com/10f93571/retry/worker"
)

// BenchmarkDelivery measures a queued request from its claim to its settled outcome, with the target in this process.
func BenchmarkDelivery(b *testing.B) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer target.Close()
	queue, err := sqlite.OpenQueue(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = queue.Close() }()
	for i := 0; i < b.N; i += 500 {
		var tasks []*task.Task
		for range min(500, b.N-i) {
			t := storetest.NewTask()
			t.Kind, t.Command, t.Queue = request.Kind, nil, task.QueueWorker
			t.Target = &request.Request{
				Method: "POST", URL: target.URL + "/hook", Keyed: true, Header: []string{"Content-Type: application/json"},
				Body: []request.Part{{Text: []byte(strings.Repeat("x", 256))}},
			}
			tasks = append(tasks, t)
		}
		if _, err := queue.Add(b.Context(), tasks); err != nil {
			b.Fatal(err)
		}
	}
	f := &flags.WorkerFlags{Concurrency: 64, PerHost: 64}
	host := &Host{Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	lines := render.Shared(NewObserver(host, &flags.OutputFlags{}))
	carrier, err := NewCarrier(host, queue, f, nil, lines)
	if err != nil {
		b.Fatal(err)
	}
	defer carrier.Close()
	config := carrier.WorkerConfig(f)
	config.Observer, config.Drain = Tell{Lines: lines}, worker.DrainAll
	b.ReportAllocs()
	b.ResetTimer()
	if err := worker.New(config).Run(context.Background(), context.Background()); err != nil {
		b.Fatal(err)
	}
}
