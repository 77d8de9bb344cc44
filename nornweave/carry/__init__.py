"""A domain's folder on several machines: leases, PostgreSQL, publication to object storage, replicas, workers.

``parts`` stores files as parts and brings them, and has the two ports: a ``Claim`` (a lease, a lock in PostgreSQL, a
publication) says what was committed and lets one commit at a time; ``Objects`` (a bucket, a folder, a table) has the
parts. A commit names every file of the domain that others need, with its parts; what none names any more is removed.
"""
