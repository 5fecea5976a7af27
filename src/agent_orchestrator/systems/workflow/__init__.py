"""Workflows: a YAML graph of steps, with gates that loop back and steps that wait for people."""
