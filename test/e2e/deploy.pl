# What is deployed with: the systemd unit is one, as far as a machine without a service manager can
# tell, and the container's files name what there is. No engine runs here.
use strict;
use warnings FATAL => 'all';

use File::Copy qw(copy);
use JSON::PP qw(decode_json);
use Test::More;

use PostgreSQL::Test::Utils;

my $folder = 'worker/deploy';

sub has_tool { return system("command -v $_[0] >/dev/null 2>&1") == 0 }

subtest 'the systemd unit' => sub {
    plan skip_all => 'no systemd-analyze here' if !has_tool('systemd-analyze');
    my $unit = slurp_file("$folder/pulse-worker\@.service");
    my $program = (run_command([ 'which', 'pulse-worker' ]))[0];
    $unit =~ s{^ExecStart=\S+}{ExecStart=$program}m;
    my $copy = PostgreSQL::Test::Utils::tempdir_short() . '/pulse-worker@mail.service';
    append_to_file($copy, $unit);
    my ($out, $err) = run_command([ 'systemd-analyze', 'verify', '--man=no', $copy ]);
    is("$out$err", '', 'systemd has nothing to say of it');
    unlike($unit, qr/^Documentation=file:/m, 'it names no file that is not installed');
    like($unit, qr/^KillMode=mixed$/m, 'a stop is told to the worker alone');
    my ($grace) = $unit =~ /--grace (\d+)s/;
    my ($limit) = $unit =~ /^TimeoutStopSec=(\d+)s$/m;
    cmp_ok($limit, '>', $grace + 7, 'which has its grace, and time to end what does not');
    mkdir "$copy.d" or die "$copy.d: $!\n";
    copy("$folder/relaxed.conf", "$copy.d/relaxed.conf") or die "relaxed.conf: $!\n";
    ($out, $err) = run_command([ 'systemd-analyze', 'verify', '--man=no', $copy ]);
    is("$out$err", '', 'nor of the relaxed drop-in');
};

subtest 'the Dockerfile' => sub {
    my $text = slurp_file("$folder/Dockerfile");
    $text =~ s/\\\n//g;
    my (%stage, $last);
    for my $line (grep { /^[A-Z]/ } split /\n/, $text) {
        if ($line =~ /^FROM (\S+) AS (\w+)$/) { $last = $stage{$2} = { from => $1 } }
        $last->{user} = $1 if $line =~ /^USER (\S+)$/;
        if (my ($from, $source) = $line =~ /^COPY (?:--from=(\w+) )?(\S+)/) {
            ok(defined $from ? $stage{$from} : -e $source, "there is what '$line' copies");
            next if !defined $from;
            next if $ENV{PULSE_STAGE} eq '/';    # of a server that is not the image's
            my ($staged) = $source =~ m{^/stage(/.+)$};
            ok(-e "$ENV{PULSE_STAGE}$staged", "$staged is installed");
        }
    }
    is($stage{worker}{user}, 'pulse', 'the worker is not root');
    like($text, qr/^STOPSIGNAL SIGTERM$/m, 'it is told to stop by what it takes for that');
};

subtest 'the compose file' => sub {
    my $read = 'import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)';
    plan skip_all => 'no yaml for Python here' if system("python3 -c 'import yaml' 2>/dev/null");
    my ($json) = run_command([ 'python3', '-c', $read, "$folder/compose.yaml" ]);
    my $services = decode_json($json)->{services};
    is_deeply([ sort keys %$services ], [ 'database', 'worker' ], 'a database and a worker');
    my $targets = join '|', slurp_file("$folder/Dockerfile") =~ /^FROM \S+ AS (\w+)$/mg;
    for my $name (sort keys %$services) {
        my $build = $services->{$name}{build};
        ok(-e "$folder/$build->{context}/$build->{dockerfile}", "$name: its Dockerfile");
        like($build->{target}, qr/^(?:$targets)$/, "$name: its stage");
    }
    my ($tasks) = $services->{worker}{volumes}[0] =~ /^([^:]+):/;
    ok(scalar(grep { -f && -x } glob "$folder/$tasks/*"), 'a task for its worker');
    ok(-e "$folder/create.sql", 'the script that creates the extension');
    is($services->{worker}{depends_on}{database}{condition}, 'service_healthy', 'one by one');
};

done_testing();
