//go:build wasip1

// The engine of the page: model.Answer for a page's JavaScript. Texts pass through its memory, as JSON.
package main

import (
	"encoding/json"
	"unsafe"

	_ "github.com/10f93571/retry/internal/expression"
	"github.com/10f93571/retry/plot/page/model"
)

// The buffers are kept here, so that they stay where the page finds them.
var question, reply []byte

// ask returns where the page may write a question of so many bytes.
//
//go:wasmexport ask
func ask(size int32) unsafe.Pointer {
	question = make([]byte, size+1) // never without a first byte
	return unsafe.Pointer(&question[0])
}

// answer answers the question and returns how long the reply is.
//
//go:wasmexport answer
func answer() int32 {
	var r model.Request
	if err := json.Unmarshal(question[:len(question)-1], &r); err != nil {
		reply, _ = json.Marshal(map[string]string{"error": err.Error()})
		return int32(len(reply))
	}
	reply, _ = json.Marshal(r.Answer()) // texts and finite numbers alone: there is nothing that cannot be written
	return int32(len(reply))
}

// read returns where the reply is.
//
//go:wasmexport read
func read() unsafe.Pointer { return unsafe.Pointer(&reply[0]) }

func main() {}
