"""What `faregate up` starts on one machine: real services from wheels, with URLs like any other."""
