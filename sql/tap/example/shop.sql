-- A small shop: what its orders enqueue, and the functions that are its tasks.

CREATE SCHEMA shop;
CREATE TABLE shop.purchase (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer text NOT NULL,
  address  text,
  total    numeric NOT NULL,
  paid_at  timestamptz
);
CREATE TABLE shop.mail (
  purchase_id bigint NOT NULL,
  kind        text NOT NULL,
  PRIMARY KEY (purchase_id, kind)
);
CREATE TABLE shop.report (day timestamptz NOT NULL, purchases bigint NOT NULL);

-- A receipt at once, each customer's mail in order; a reminder unless the purchase is paid; a
-- charge by a program of the payment provider.
CREATE FUNCTION shop.buy(customer text, total numeric, address text = 'here') RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  bought bigint;
BEGIN
  INSERT INTO shop.purchase (customer, address, total)
  VALUES (buy.customer, buy.address, buy.total) RETURNING id INTO bought;
  PERFORM pulse.add_job('shop/receipt', json_build_object('purchase', bought),
                        queue_name => 'mail/' || customer);
  PERFORM pulse.add_job('shop/remind', json_build_object('purchase', bought),
                        run_at => pulse.now() + interval '3 days',
                        job_key => 'remind ' || bought);
  PERFORM pulse.add_job('shop/charge', json_build_object('purchase', bought, 'total', buy.total),
                        max_attempts => 2, priority => -1);
  RETURN bought;
END $$;

CREATE FUNCTION shop.pay(purchase_id bigint) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  UPDATE shop.purchase AS p SET paid_at = pulse.now() WHERE p.id = pay.purchase_id;
  PERFORM pulse.remove_job('remind ' || pay.purchase_id);
END $$;

CREATE FUNCTION shop.send(purchase_id bigint, kind text) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT p.address IS NULL FROM shop.purchase AS p WHERE p.id = send.purchase_id) THEN
    RAISE EXCEPTION 'purchase % has no address', send.purchase_id;
  END IF;
  INSERT INTO shop.mail (purchase_id, kind) VALUES (send.purchase_id, send.kind);
END $$;

CREATE FUNCTION shop.receipt(payload jsonb) RETURNS void
  LANGUAGE sql AS $$ SELECT shop.send((payload ->> 'purchase')::bigint, 'receipt') $$;
CREATE FUNCTION shop.remind(payload jsonb) RETURNS void
  LANGUAGE sql AS $$ SELECT shop.send((payload ->> 'purchase')::bigint, 'reminder') $$;
CREATE FUNCTION shop.report(job pulse.claimed_job) RETURNS void
  LANGUAGE sql AS $$
  INSERT INTO shop.report SELECT job.scheduled_for, count(*) FROM shop.purchase
$$;

SELECT pulse.set_task('shop/receipt', handler => 'shop.receipt(jsonb)', max_attempts => 3),
       pulse.set_task('shop/remind', handler => 'shop.remind(jsonb)'),
       pulse.set_task('shop/report', handler => 'shop.report(pulse.claimed_job)'),
       pulse.schedule('shop report', 'shop/report', '30 6 * * *', time_zone => 'Europe/Berlin');
