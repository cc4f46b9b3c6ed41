package page_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/10f93571/retry/plot/page/model"
)

// engineCases use every kind of curve and jitter, an optional parameter, a budget, a slider that was moved and a
// mistake.
func engineCases() model.Request {
	r := request("exp:1s..1m/phase", "list:1s,2s,5s/30%", "expr:15 + n^4 + rand(30)*n/none", "sidekiq/none",
		"constant:5s/equal", "linear:5s+2s..1m/full",
		"fib:1s/decorrelated", "poly:15s+n^4/add:30s*n", "buckets:3", "exp:")
	r.Tasks = 20
	r.Specs[5].BudgetMS = 60_000
	r.Specs[0].Move = &model.Move{Index: 0, Place: 0.7}
	return r
}

// The engine that is checked in computes what this program computes. It may draw in an older way: it is compiled for a
// release, not for each change.
func TestEngineComputesTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds to compile the engine")
	}
	want := engineCases().Answer()
	got := askEngine(t, engineCases())
	if len(got.Specs) != len(want.Specs) || got.Tasks != want.Tasks || !reflect.DeepEqual(got.Curves, want.Curves) ||
		!reflect.DeepEqual(got.Jitters, want.Jitters) {
		t.Fatalf("got %d specs of %d tasks, curves %v, jitters %v; want %d, %d, %v, %v\nhint: run make engine",
			len(got.Specs), got.Tasks, got.Curves, got.Jitters, len(want.Specs), want.Tasks, want.Curves, want.Jitters)
	}
	for i, want := range want.Specs {
		got := got.Specs[i]
		if (got.SVG == "") != (want.SVG == "") || (got.Error == "") != (want.Error == "") {
			t.Errorf("%s: got the error %q and %d bytes of SVG, want %q and %d", want.Backoff, got.Error, len(got.SVG),
				want.Error, len(want.SVG))
		}
		got.SVG, got.Error, want.SVG, want.Error = "", "", "", ""
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s/%s: got\n%+v, want\n%+v\nhint: run make engine", want.Backoff, want.Jitter, got, want)
		}
	}
}

// askEngine runs the engine as page.js does.
func askEngine(t *testing.T, r model.Request) (answer model.Answer) {
	t.Helper()
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter()) // compiling takes longer
	defer func() { _ = runtime.Close(ctx) }()
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	engine, err := runtime.InstantiateWithConfig(ctx, engineCode(t),
		wazero.NewModuleConfig().WithStartFunctions("_initialize").WithStderr(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	call := func(f api.Function, arguments ...uint64) uint32 {
		results, err := f.Call(ctx, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		return api.DecodeU32(results[0])
	}
	question, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	at := call(engine.ExportedFunction("ask"), uint64(len(question)))
	if !engine.Memory().Write(at, question) {
		t.Fatalf("got the address %d for the question, want one in the memory", at)
	}
	length := call(engine.ExportedFunction("answer"))
	reply, ok := engine.Memory().Read(call(engine.ExportedFunction("read")), length)
	if !ok {
		t.Fatal("got an answer outside of the memory")
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func engineCode(t *testing.T) []byte {
	t.Helper()
	packed, err := os.ReadFile("engine.wasm.gz")
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	code, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return code
}
