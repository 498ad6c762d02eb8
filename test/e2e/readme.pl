# What README.md tells of itself holds: where pg_pulse runs and where not, and three ways to begin,
# each of which is there. The suite docs runs the code of the page.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Prose;

my $readme = prose_of('README.md');

# The text below a heading of the second level.
sub section {
    my ($heading) = @_;
    my ($text) = $readme =~ /^## \Q$heading\E\n(.*?)(?=^## |\z)/ms;
    return $text // BAIL_OUT("README.md has no section '$heading'");
}

# Exit code and output of a dry run: a target that is missing fails.
sub has_target {
    my (@words) = @_;
    my ($out, $err) = ('', '');
    my $is_there = IPC::Run::run([ 'make', '-n', @words ], '<', \undef, '>', \$out, '2>', \$err);
    return ok($is_there, "make @words") || diag($err);
}

subtest 'what it needs' => sub {
    my $needs = section('What it needs');
    like($needs, qr/\b\Q$_\E\b/, "not on $_") for 'Amazon RDS', 'Cloud SQL', 'Supabase', 'Neon';
    my ($kernel) = $needs =~ /needs Linux ([\d.]+) or later/;
    like(prose_of('docs/recovery.md'), qr/needs Linux \Q$kernel\E or later/,
        'the same Linux as in docs/recovery.md');
    my @suites = $needs =~ /PostgreSQL (\d+) on Debian 12 or (\d+) on Debian 13/;
    my ($others) = $needs =~ /the suites also ran on \[([^\]]+)\]\(docs\/versions\.md\)/;
    my $versions = prose_of('docs/versions.md');
    like($versions, qr/PostgreSQL of Debian 12, $suites[0], and of Debian 13, $suites[1]:/,
        'the same servers as in docs/versions.md');
    like($versions, qr/^\| $_ \| yes /m, "with $_ in the grid") for $others =~ /\d+/g;
    my ($major) = `pg_config --version` =~ /(\d+)/;
    like("@suites $others", qr/\b$major\b/, 'the server of this test is one of them');
};

unlike((split /^## What it needs/m, $readme)[0], qr/Citus[^.]*\d/s,
    'figures of a cluster do not come before what a first server needs');

subtest 'three ways to begin' => sub {
    my @ways = split /^- /m, section('Three ways to begin');
    like($ways[0], qr/`git clone` the address from which you read this page/,
        'from the clone of what is read, wherever that is');
    like($ways[0], qr/`sudo apt-get update && sudo apt-get install git make` first/,
        'after what a new system lacks, whose apt may have no lists yet');
    like($ways[0], qr/lacks `sudo` leaves the word out, and types `runuser -u postgres --`/,
        'also as root without sudo');
    is(scalar @ways, 4, 'are three');
    like($ways[1], qr/^\*\*Look\*\*: `make demo`/, 'the first is the demo');
    has_target('demo');
    my ($page) = $ways[2] =~ /\]\(([^)]+)\)/;
    like(prose_of($page), qr/^\*\*Without installing\*\*, a private server/m,
        "the second is $page, which has a server that needs no installation");
    like($ways[3], qr/^\*\*Docker\*\*/, 'the third is Docker');
};

subtest 'the commands for Docker' => sub {
    my ($block) = section('Three ways to begin') =~ /^```sh no-run\n(.*?)^```/ms;
    my ($folder) = $block =~ /^cd (\S+) && export /;
    my $compose = slurp_file("$folder/compose.yaml");
    my ($settings) = $block =~ /export ([^#\n]*)/;
    my %wanted = map { $_ => 1 } $compose =~ /\$\{(\w+):\?/g;
    is_deeply([ sort $settings =~ /(\w+)=/g ], [ sort keys %wanted ],
        'give each variable that the file asks for, and no other');
    like($block, qr/^docker compose up --build/m, 'build');
    like($compose, qr/^\s+target: \Q$_\E$/m, "and make $_") for qw(database worker);
    like($compose, qr/^  \Q$_\E:$/m, "ask the service $_")
      for $block =~ /^docker compose (?:exec|logs) (\w+)/mg;
    my ($database) = $block =~ /psql -U postgres (\w+) /;
    like($compose, qr/^\s+POSTGRES_DB: \Q$database\E$/m, 'the database is there');
    my ($task) = $block =~ /add_job\('(\w+)'\)/;
    ok(-x "$folder/tasks/$task", 'and so is the task');
};

subtest 'the commands of the installation' => sub {
    my ($block) = section('Install') =~ /^```sh no-run\n(.*?)^```/ms;
    my @commands = map { s/\s*#.*//r } split /\n/, $block;
    for my $command (@commands) {
        my ($words) = $command =~ /^(?:sudo )?make (.*)$/ or fail("'$command' is no make");
        has_target(grep { !/^-/ } split ' ', $words);
    }
    has_target('packages', "FOR=$_") for $block =~ /FOR=(\w+)/g;
    has_target($_) for section('Install') =~ /`(?:sudo )?make (\w+)`/g;
};

subtest 'the quick start' => sub {
    like(section('Quick start'), qr/^pg_lsclusters .*pg_ctlcluster/m,
        'begins with a server that runs, which a container has not started');
};
done_testing();
