"""A domain's folder on several machines: leases, PostgreSQL, publication to object storage, replicas, workers.

Below its address: ``objects/sha256/<hex>`` are files, ``domains/<domain>/manifests/`` say which of them are a
generation, ``domains/<domain>/CURRENT`` names the manifest that counts, ``WORKSPACE`` says how to answer from it all.
Objects and manifests never change. The two pointers are replaced only by who read what they replace.
"""
