"""The public test kit: a clock that jumps, a simulated world with faults, and checks for systems, agents and stores."""
