# The package of the library for Ruby: built, installed without a network, and its first screen done
# in an empty folder as a new user would; then an application of Active Job.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Prose;
use Pulse::RubyLibrary;
use Pulse::Server;

require_ruby(qw(pg bundler active_record active_job));

my $root = getcwd;
my $folder = PostgreSQL::Test::Utils::tempdir;
my $node = start_server('main', settings => \%PATIENT);
local @ENV{qw(HOME GEM_HOME PGHOST PGPORT PGUSER)} =
  ($folder, "$folder/gems", $node->host, $node->port, scalar getpwuid $>);

sub run_in {
    my ($place, $command) = @_;
    my $output = `cd '$place' && ($command) 2>&1`;
    is($?, 0, $command) or diag($output);
    return $output;
}

my %block;
my $readme = prose_of('clients/ruby/README.md');
push @{ $block{ $2 || $1 } }, $3 while $readme =~ /^```(\w+) ?(\S*)\n(.*?)^```$/msg;

my $gem = "$folder/pg_pulse-0.2.0.gem";
run_in("$root/clients/ruby", "gem build pg_pulse.gemspec --output '$gem'");
my $files = run_in($folder, "tar -xOf $gem data.tar.gz | tar -tz");
like($files, qr/^$_$/m, "it has $_") for qw(README.md LICENSE exe/pg_pulse lib/pg_pulse.rb
  lib/pg_pulse/active_job.rb lib/pg_pulse/testing.rb lib/pg_pulse/generated/functions.rb);
unlike($files, qr{^test/}m, 'but not its tests');
run_in($folder, "gem install --local --no-document $gem");

mkdir "$folder/shop" or die "$folder/shop: $!\n";
append_to_file("$folder/shop/$_", $block{$_}[0]) for qw(Gemfile app.rb);
my ($install, $run) = @{ $block{sh} };
is($install, "bundle install\n", 'the first step');
run_in("$folder/shop", 'bundle install --local');
my ($line) = $readme =~ m{`(gem 'pg_pulse', path: '~/[^`]*)`};
my ($settings) = $readme =~ /`(bundle config set [^`]*)` comes before/;
symlink $root, "$folder/pg_pulse" or die "$folder/pg_pulse: $!\n";
mkdir "$folder/clone" or die "$folder/clone: $!\n";
append_to_file("$folder/clone/Gemfile", "$line\n");
run_in("$folder/clone", "$settings && unset GEM_HOME && bundle install --local"
      . " && bundle exec ruby -e 'require %(pg_pulse)'");
value($node, 'CREATE DATABASE shop');
value($node, 'CREATE EXTENSION pg_pulse', 'shop');
value($node, q{SELECT pulse.set_task('greet', keep_completed => '1 day')}, 'shop');
my $output = run_in("$folder/shop", $run);
like($output, qr/hello, Ada/, 'the log has what the handler prints');
is(value($node, q{SELECT state, result ->> 'greeted' FROM pulse.finished_job}, 'shop'),
    'completed|Ada', 'the job has run');

# An application, as far as pg_pulse knows Rails.
mkdir "$folder/shop/config" or die "$folder/shop/config: $!\n";
append_to_file("$folder/shop/config/environment.rb", <<'RUBY');
%w[active_record active_job pg_pulse].each { |gem| require gem }
ActiveRecord::Base.establish_connection(adapter: 'postgresql', database: 'shop')
ActiveJob::Base.queue_adapter = :pg_pulse

class LetterJob < ActiveJob::Base
  retry_on(IOError, wait: 0)

  def perform(name)
    raise IOError if executions == 1

    logger.info("letter to #{name}")
    ActiveRecord::Base.connection.select_value('SELECT 1')
  end
end
RUBY
append_to_file("$folder/shop/Gemfile", "gem 'activejob'\ngem 'activerecord'\ngem 'pg'\n");
run_in("$folder/shop", 'bundle install --local');
run_in("$folder/shop", q{bundle exec ruby -r ./config/environment -e '
  10.times { |n| ActiveRecord::Base.transaction do
    LetterJob.perform_later("n#{n}")
    raise ActiveRecord::Rollback if n == 9
  end }'});
$output = run_in("$folder/shop",
    q{pulse-worker --database shop --program 'bundle exec pg_pulse' --once \
      --pass-env PGHOST PGPORT PGUSER});
like($output, qr/job=\d+.* text="[^"]*letter to n8"/, 'jobs of Active Job run, and log');
is(value($node, q{SELECT count(*), string_agg(DISTINCT outcomes, ' ') FROM (
    SELECT string_agg(outcome::text, ',' ORDER BY token) AS outcomes
      FROM pulse.attempt WHERE job_id > 1 AND outcome <> 'released' GROUP BY job_id) AS a}, 'shop'),
    '9|failed,completed', 'the retry of each is its second attempt, and no second job');

chdir "$folder/shop" or die "$folder/shop: $!\n";
for my $case (
    [ 'pg_pulse app.rb', qr{pulse-worker --database NAME --program 'bundle exec pg_pulse app.rb'},
        'without a worker it says how it is meant to be started' ],
    [ 'pg_pulse --wrong', qr/^usage: pulse-worker --database NAME/m,
        'a wrong option has the usage' ],
    [ 'sh -c "cd config && pg_pulse"', qr{there is no config/environment.rb},
        'so has an empty folder' ]) {
    my ($command, $said, $name) = @$case;
    my $told = `bundle exec $command 2>&1`;
    isnt($?, 0, "$command is refused");
    like($told, $said, $name);
}
chdir $root or die "$root: $!\n";

expect_healthy($node);
done_testing();
