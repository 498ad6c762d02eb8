# A process that writes each of its jobs to the database, as far as the claim holds.
import json
import sys

import psycopg


def run(connection, job):
    try:
        connection.execute("SELECT app.sink(%(id)s, %(token)s)", job)
    except psycopg.Error as error:
        return {"error": str(error)}
    return {"result": None}


def main():
    connection = psycopg.connect(sys.argv[1], autocommit=True)
    print('{"takes": 20}', flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "cancel" not in message:
            answer = run(connection, message["job"])
            print(json.dumps({"id": message["id"], **answer}), flush=True)


main()
