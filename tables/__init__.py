"""What the agents keep: Faust tables behind the ports of the domain."""
