"""What an operator watches: consumer lag and its verdicts, the work in flight, a worker's own health."""
