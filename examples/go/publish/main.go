// Publish sends a request for a short video to Sceneloom.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// SubmitProject is docs/schemas/submit-project.json.
type SubmitProject struct {
	Type      string          `json:"type"`
	ProjectID string          `json:"project_id"`
	Request   json.RawMessage `json:"request"`
}

func main() {
	broker := flag.String("broker", "127.0.0.1:9092", "where Kafka is, HOST:PORT")
	prefix := flag.String("prefix", "", "what stands before every topic name")
	id := flag.String("id", "", "the project id: to send the same request twice under one id is safe")
	flag.Parse()
	if *id == "" || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: publish [-broker HOST:PORT] [-prefix PREFIX] -id PROJECT_ID REQUEST.json")
		os.Exit(2)
	}
	if err := publish(*broker, *prefix+"project-requests", *id, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(*id)
}

func publish(broker, topic, id, path string) error {
	request, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	value, err := json.Marshal(SubmitProject{Type: "SubmitProject", ProjectID: id, Request: request})
	if err != nil {
		return fmt.Errorf("%s is not JSON: %w", path, err)
	}
	// franz-go partitions by murmur2 of the key, as Kafka's own clients do, and waits for all replicas.
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	record := &kgo.Record{Topic: topic, Key: []byte(id), Value: value}
	return client.ProduceSync(ctx, record).FirstErr()
}
