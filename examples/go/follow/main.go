// Follow prints what becomes of projects: the URL of each finished video, and why others were not made.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Event has the fields of docs/schemas/project-*.json that are read here; others are ignored.
type Event struct {
	Assets struct {
		VideoURL string `json:"video_url"`
	} `json:"assets"`
	Message string `json:"message"`
	Faults  []struct {
		Path    string `json:"path"`
		Message string `json:"message"`
	} `json:"faults"`
}

func main() {
	broker := flag.String("broker", "127.0.0.1:9092", "where Kafka is, HOST:PORT")
	prefix := flag.String("prefix", "", "what stands before every topic name")
	group := flag.String("group", "example-follow", "the consumer group: it goes on where it has committed")
	until := flag.String("until", "", "end with this project: exit code 0 if its video is there, else 1")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	completed, err := follow(ctx, *broker, *prefix+"project-events", *group, *until)
	if err != nil {
		log.Fatal(err)
	}
	if *until != "" && !completed {
		os.Exit(1)
	}
}

// follow tells of every end of a project, and returns after that of the project until: was it completed?
func follow(ctx context.Context, broker, topic, group, until string) (bool, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(broker),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	)
	if err != nil {
		return false, err
	}
	defer client.Close()
	seen := map[string]bool{} // an event may come twice; a real consumer keeps the ids with what it did
	ended, completed := false, false
	for !ended {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return false, err
		}
		for _, record := range fetches.Records() {
			headers := map[string]string{}
			for _, header := range record.Headers {
				headers[header.Key] = string(header.Value)
			}
			if seen[headers["ce_id"]] {
				continue
			}
			seen[headers["ce_id"]] = true
			isEnd, err := tell(headers, record.Value)
			if err != nil {
				return false, err
			}
			if isEnd && headers["ce_subject"] == until {
				ended, completed = true, headers["ce_type"] == "ProjectCompleted"
			}
		}
		// Only now: what is told before a crash is told again, and nothing is left out.
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return false, err
		}
	}
	return completed, nil
}

// tell prints the end of a project and returns whether it was one; other events, also unknown ones, are passed over.
func tell(headers map[string]string, value []byte) (bool, error) {
	var event Event
	if err := json.Unmarshal(value, &event); err != nil {
		if headers["ce_type"] == "" {
			return false, nil // no event of ours, whoever put it there
		}
		return false, fmt.Errorf("event %s: %w", headers["ce_id"], err)
	}
	project := headers["ce_subject"]
	switch headers["ce_type"] {
	case "ProjectCompleted":
		fmt.Printf("%s completed %s\n", project, event.Assets.VideoURL)
	case "ProjectFailed":
		fmt.Printf("%s failed %s\n", project, event.Message)
	case "ProjectCancelled":
		fmt.Printf("%s cancelled\n", project)
	case "ProjectRejected":
		for _, fault := range event.Faults {
			fmt.Printf("%s rejected %s: %s\n", project, fault.Path, fault.Message)
		}
	default:
		return false, nil
	}
	return true, nil
}
